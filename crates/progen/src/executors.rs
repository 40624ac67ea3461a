//! The compiler's side: the only file that knows its interfaces.
//!
//! A program goes through the front end and the reference evaluator; then, for each target,
//! through the passes with the verifier after each, the hazard checker, and the simulator in every
//! mode of asynchrony and some orders of warps; on request through code generation and the
//! vendor's compiler, as machine code in the emulator, or on a GPU. Whatever ends in an answer must
//! end in the plain evaluator's.

use std::sync::OnceLock;

use tilewright::codegen;
use tilewright::emulate::{self, Emulator, LANDINGS};
use tilewright::frontend;
use tilewright::ir::small_float::Number;
use tilewright::ir::{
    Counter, DType, Diagnostic, Dialect, Func, SourceMap, StmtKind, Target, visit,
};
use tilewright::jit;
use tilewright::passes::driver::{self, Cause};
use tilewright::runtime::device::{Device, cuda};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{AmdToolchain, CompileOptions, HipOptions, Toolchain};
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, Interleaving, Landing, SimtOptions};
use tilewright::sim::{self, Arg, Args, HostTensor, RunOptions};

use crate::failure::Failure;
use crate::program::{Buf, Program, Stmt};
use crate::source;
use crate::types::Type;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub targets: Vec<&'static str>,
    /// Orders of warps in each mode.
    pub orders: u64,
    /// Targets whose source is compiled by the vendor's compiler.
    pub toolchains: Vec<&'static str>,
    /// Targets whose machine code is emulated, of [`emulated`].
    pub emulated: Vec<&'static str>,
    /// Also on the first NVIDIA GPU of this machine.
    pub gpu: bool,
}

/// The names of all targets.
pub fn targets() -> Vec<&'static str> {
    Target::ALL.iter().map(|t| t.name()).collect()
}

/// The names of the targets whose machine code can be emulated.
pub fn emulated() -> Vec<&'static str> {
    let all = Target::ALL.iter().filter(|t| Emulator::runs(**t));
    all.map(|t| t.name()).collect()
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            targets: targets(),
            orders: 2,
            toolchains: Vec::new(),
            emulated: Vec::new(),
            gpu: false,
        }
    }
}

/// What is known of a program that did not fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Targets for which the hazard checker could not decide.
    pub unproved: u32,
    /// Targets that refuse the program because they lack an instruction.
    pub lacking: u32,
    /// Programs that a vendor's compiler took.
    pub compiled: u32,
    /// Targets whose machine code was emulated.
    pub emulated: u32,
}

/// Runs a program in every way of the plan; `expected` is what its tensors hold afterwards.
pub fn check(program: &Program, expected: &[Vec<i64>], plan: &Plan) -> Result<Passed, Failure> {
    let text = source::print(program);
    let mut sources = SourceMap::new();
    let file = sources.add("program.py", text);
    let staged = frontend::stage(&sources, file, Some("main"), &[])
        .map_err(|d| refused("frontend", d.iter(), &sources))?;
    let func = staged.func;
    let run = Run {
        program,
        expected,
        sources: &sources,
        plan,
    };
    run.reference(&func)?;
    let mut passed = Passed::default();
    for name in &plan.targets {
        let Some(target) = Target::from_name(name) else {
            return Err(Failure::new("no-target", *name));
        };
        run.target(&func, target, &mut passed)
            .map_err(|f| f.on(target.name()))?;
    }
    if plan.gpu {
        for target in Target::ALL {
            // The GPU is opened by CUDA's driver.
            let runs = target.machine().dialect == Dialect::Cuda;
            if runs && plan.targets.contains(&target.name()) {
                run.gpu(&func, target).map_err(|f| f.on(target.name()))?;
            }
        }
    }
    Ok(passed)
}

struct Run<'a> {
    program: &'a Program,
    expected: &'a [Vec<i64>],
    sources: &'a SourceMap,
    plan: &'a Plan,
}

impl Run<'_> {
    fn reference(&self, func: &Func) -> Result<(), Failure> {
        let mut args = self.args()?;
        let options = RunOptions {
            threads: 1,
            step_limit: 1 << 26,
            ..RunOptions::default()
        };
        sim::run(func, &mut args, &options)
            .map_err(|e| refused("reference", e.diagnostics.iter(), self.sources))?;
        self.compare("reference-value", &args)
    }

    fn target(&self, func: &Func, target: Target, passed: &mut Passed) -> Result<(), Failure> {
        let Some(lowered) = self.lower(func, target)? else {
            passed.lacking += 1;
            return Ok(());
        };
        let report = hazard::check(&lowered, target);
        if let Some(first) = report.hazards.first() {
            let code = first.kind.code();
            let text = render(report.diagnostics().iter(), self.sources);
            return Err(Failure::new(format!("hazard:{code}"), text));
        }
        passed.unproved += u32::from(!report.proved);
        for landing in landings(&lowered) {
            for seed in 0..self.plan.orders {
                // One order goes on until a warp waits, the others change after each statement.
                let interleaving = match seed {
                    0 => Interleaving::UntilBlocked,
                    _ => Interleaving::EveryStatement,
                };
                let options = SimtOptions {
                    seed,
                    interleaving,
                    landing,
                    threads: 1,
                    step_limit: 1 << 26,
                    ..SimtOptions::default()
                };
                let mut args = self.args()?;
                let report = simt::run(&lowered, target, &mut args, &options)
                    .map_err(|e| refused("sim", e.diagnostics.iter(), self.sources))?;
                if let Some(first) = report.findings.first() {
                    let text = render(report.diagnostics().iter(), self.sources);
                    let what = first.place.what.split_whitespace().next().unwrap_or("");
                    let kind = format!("sim-finding:{:?}-{what}", first.kind);
                    return Err(Failure::new(
                        kind,
                        format!("{landing:?}, order {seed}\n{text}"),
                    ));
                }
                self.compare("sim-value", &args)?;
            }
        }
        let source = self.generate(&lowered, target)?;
        if self.plan.toolchains.contains(&target.name()) {
            self.compile(&source, target)?;
            passed.compiled += 1;
        }
        if self.plan.emulated.contains(&target.name()) {
            self.emulate(&lowered, target)?;
            passed.emulated += 1;
        }
        Ok(())
    }

    /// Runs the machine code that the vendor's compiler makes of a program.
    fn emulate(&self, lowered: &Func, target: Target) -> Result<(), Failure> {
        let told = |e: jit::Error| {
            let list = e.into_diagnostics();
            refused("emulator", list.iter(), self.sources)
        };
        let emulator = Emulator::new(lowered, target, self.sources).map_err(told)?;
        for (seed, (name, landing)) in (0..).zip(LANDINGS) {
            let options = emulate::Options {
                landing,
                seed,
                threads: 1,
                steps: 1 << 26,
                ..emulate::Options::default()
            };
            let mut args = self.args()?;
            let ran = emulator.run(&mut args, &options).map_err(told)?;
            if let Some(kind) = ran.kinds.first() {
                let text = render(ran.findings.iter(), self.sources);
                let detail = format!("landing {name}\n{text}");
                return Err(Failure::new(format!("emulator-finding:{kind}"), detail));
            }
            self.compare("emulator-value", &args)?;
        }
        Ok(())
    }

    /// Device IR; `None` where the target says that it has no instruction for this.
    fn lower(&self, func: &Func, target: Target) -> Result<Option<Func>, Failure> {
        let mut func = func.clone();
        let Err(failed) = driver::run(&mut func, target, &driver::Options::default()) else {
            return Ok(Some(func));
        };
        let errors = failed.errors.iter();
        if let Cause::Broken(step) = failed.cause {
            let kind = format!("verifier:{}", step.name);
            return Err(Failure::new(kind, render(errors, self.sources)));
        }
        let refusal = |d: &Diagnostic| d.code.0 == "no-matrix-path";
        if errors.clone().any(refusal) && lacks_products(self.program, target) {
            return Ok(None);
        }
        Err(refused("refused", errors, self.sources))
    }

    /// The generated source.
    fn generate(&self, lowered: &Func, target: Target) -> Result<String, Failure> {
        let options = codegen::Options {
            sources: Some(self.sources),
            line_directives: false,
        };
        codegen::generate(lowered, target, options)
            .map(|source| source.text)
            .map_err(|d| refused("codegen", [&*d].into_iter(), self.sources))
    }

    fn compile(&self, source: &str, target: Target) -> Result<(), Failure> {
        let env = Env::process();
        // Each dialect has a compiler of its own.
        let told = match target.machine().dialect {
            Dialect::Cuda => Toolchain::find(&env)
                .and_then(|t| t.compile(source, target.name(), &CompileOptions::default()))
                .map(|_| ()),
            Dialect::Hip => AmdToolchain::find(&env)
                .and_then(|t| t.compile(source, target.name(), &HipOptions::default()))
                .map(|_| ()),
        };
        told.map_err(|e| Failure::new("toolchain", e.to_string()))
    }

    fn gpu(&self, func: &Func, target: Target) -> Result<(), Failure> {
        let told = |e: jit::Error| {
            let list = e.into_diagnostics();
            refused("gpu", list.iter(), self.sources)
        };
        let device = device().map_err(|e| Failure::new("no-gpu", e))?;
        let info = device.info();
        let options = jit::Options {
            arch: (!info.runs(target.name())).then(|| info.arch()),
            ..jit::Options::default()
        };
        let program = jit::build(func, target, &options, Some(self.sources), &Env::process());
        let mut args = self.args()?;
        let loaded = program.and_then(|p| p.load(&device)).map_err(told)?;
        loaded.run(&mut args).map_err(told)?;
        self.compare("gpu-value", &args)
    }

    /// The tensors before the kernel runs.
    fn args(&self) -> Result<Args, Failure> {
        let mut args = Args::new();
        for buf in self.program.tensors() {
            let data = &self.program.buffers[buf.0];
            let shape: Vec<usize> = self.shape(buf);
            let values: Vec<i128> = self
                .program
                .start_values(buf)
                .into_iter()
                .map(i128::from)
                .collect();
            let tensor = DType::from_name(data.ty.name())
                .and_then(|dtype| HostTensor::from_ints(dtype, &shape, &values))
                .ok_or_else(|| Failure::new("no-tensor", data.ty.name()))?;
            args.insert(source::name(self.program, buf), Arg::Tensor(tensor));
        }
        Ok(args)
    }

    fn shape(&self, buf: Buf) -> Vec<usize> {
        let shape = self.program.shape(buf);
        shape.into_iter().map(|n| n as usize).collect()
    }

    fn compare(&self, kind: &str, args: &Args) -> Result<(), Failure> {
        for (buf, expected) in self.program.tensors().zip(self.expected) {
            let name = source::name(self.program, buf);
            let Some(tensor) = args.tensor(&name) else {
                return Err(Failure::new(kind, format!("{name} is not there")));
            };
            let mut wrong = Vec::new();
            for (at, want) in expected.iter().enumerate() {
                let right = match tensor.get(at) {
                    Some(Number::Int(v)) => v == i128::from(*want),
                    Some(Number::Float(v)) => v == *want as f64,
                    None => false,
                };
                if !right {
                    wrong.push(at);
                }
            }
            if let Some(at) = wrong.first() {
                let place = tensor.coordinates(*at);
                let detail = format!(
                    "{name}{place:?} is {} and not {}; {} of {} elements are wrong",
                    tensor.get_f64(*at),
                    expected[*at],
                    wrong.len(),
                    expected.len()
                );
                return Err(Failure::new(kind, detail));
            }
        }
        Ok(())
    }
}

/// Whether a program multiplies types that a target has no instruction for. It names the targets
/// because it must not ask the table that it tests.
fn lacks_products(program: &Program, target: Target) -> bool {
    let mut found = false;
    program.walk(&mut |stmt| {
        if let Stmt::Gemm(g) = stmt {
            let (ab, acc) = (program.buffers[g.a.buf.0].ty, program.buffers[g.c.buf.0].ty);
            let small = matches!(ab, Type::E4M3 | Type::E5M2);
            found |= match target {
                Target::Sm80 => small,
                Target::Sm90a => small && acc == Type::F16,
                Target::Gfx942 | Target::Gfx950 => acc == Type::F16,
            };
        }
    });
    found
}

/// The GPU of this process: opened once, because that takes longer than most programs.
fn device() -> Result<Device, String> {
    static DEVICE: OnceLock<Result<Device, String>> = OnceLock::new();
    let opened = DEVICE.get_or_init(|| cuda::open(0).map_err(|e| e.to_string()));
    opened.clone()
}

/// The modes of asynchrony that make a difference to a function.
fn landings(func: &Func) -> Vec<Landing> {
    let (mut lds, mut dma) = (false, false);
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Micro(m) = &stmt.kind {
                lds |= m.counter == Some(Counter::Lgkmcnt);
                dma |= m.counter.is_some_and(|c| c != Counter::Lgkmcnt);
            }
        });
    }
    let default = Landing::default();
    let mut modes = Landing::ALL.to_vec();
    modes.retain(|m| (lds || m.lds == default.lds) && (dma || m.dma == default.dma));
    modes
}

fn refused<'a>(
    stage: &str,
    diags: impl Iterator<Item = &'a Diagnostic> + Clone,
    sources: &SourceMap,
) -> Failure {
    let first = diags
        .clone()
        .find(|d| d.severity == tilewright::ir::Severity::Error);
    let code = first.map_or("unknown", |d| d.code.0);
    Failure::new(format!("{stage}:{code}"), render(diags, sources))
}

fn render<'a>(diags: impl Iterator<Item = &'a Diagnostic>, sources: &SourceMap) -> String {
    let parts: Vec<String> = diags.map(|d| d.render(sources, false)).collect();
    parts.join("\n\n")
}
