//! Running text.

use std::collections::BTreeSet;

use tilewright_ir::{Func, SourceMap, Target, text};
use tilewright_sim::simt::{self, Interleaving, SimtOptions, SimtReport};
use tilewright_sim::{Args, InputSpec, make_inputs};

/// A parsed text.
pub struct Module {
    pub funcs: Vec<Func>,
    pub sources: SourceMap,
}

impl Module {
    pub fn parse(name: &str, source: &str) -> Module {
        let mut sources = SourceMap::new();
        let file = sources.add(name, source);
        match text::parse_module(source, file) {
            Ok(funcs) => Module { funcs, sources },
            Err(list) => {
                let list: Vec<String> = list.iter().map(|d| d.render(&sources, false)).collect();
                panic!("{name}: {}", list.join("\n"))
            }
        }
    }

    /// The function under test.
    pub fn func(&self) -> &Func {
        &self.funcs[0]
    }

    /// Simulates the first function.
    pub fn simulate(&self, target: Target, spec: &InputSpec, opts: &SimtOptions) -> Outcome {
        let mut args = make_inputs(self.func(), spec).expect("inputs can be made");
        match simt::run(self.func(), target, &mut args, opts) {
            Ok(report) => Outcome { report, args },
            Err(e) => {
                let list = e.diagnostics.render(&self.sources, false);
                panic!("{target}: {list}")
            }
        }
    }

    /// The findings as `kind line line`, lines ascending.
    pub fn found(&self, report: &SimtReport) -> BTreeSet<String> {
        let line = |span| self.sources.line_col(span).map_or(0, |(line, _)| line);
        report
            .findings
            .iter()
            .map(|f| {
                let mut lines: Vec<usize> = std::iter::once(&f.place)
                    .chain(&f.others)
                    .map(|p| line(p.span))
                    .collect();
                lines.sort_unstable();
                lines.dedup();
                let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
                format!("{} {}", f.kind, lines.join(" "))
            })
            .collect()
    }
}

pub struct Outcome {
    pub report: SimtReport,
    pub args: Args,
}

impl Outcome {
    /// The bytes of an output.
    pub fn bytes(&self, name: &str) -> &[u8] {
        self.args.tensor(name).expect("a tensor").bytes()
    }

    pub fn values(&self, name: &str) -> Vec<f64> {
        self.args.tensor(name).expect("a tensor").to_f64()
    }

    /// Fails with everything that was found.
    pub fn assert_clean(&self) {
        let list: Vec<String> = self.report.findings.iter().map(|f| f.to_string()).collect();
        assert!(list.is_empty(), "{}", list.join("\n"));
    }
}

/// The ways of running that must all agree.
pub fn ways() -> Vec<SimtOptions<'static>> {
    let mut list = Vec::new();
    for seed in 0..5 {
        list.push(SimtOptions {
            seed,
            step_limit: 1_000_000,
            threads: 2,
            ..SimtOptions::default()
        });
    }
    for seed in 5..8 {
        list.push(SimtOptions {
            seed,
            interleaving: Interleaving::EveryStatement,
            step_limit: 1_000_000,
            threads: 1,
            ..SimtOptions::default()
        });
    }
    list
}
