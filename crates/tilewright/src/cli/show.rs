//! What the passes do on their way, for the commands that run them: the IR after each in files
//! or printed, and how long each took.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tilewright::decisions::{Decisions, PLACED};
use tilewright::ir::nearest::suggestion;
use tilewright::ir::{Diagnostic, Diagnostics, Func, SourceMap, Target, text};
use tilewright::lowering::Times;
use tilewright::passes::driver::{Hook, Step};
use tilewright::passes::{self, PassInfo};

use super::dump::Dump;
use super::output::{self, Failure};
use super::timings::Timings;

#[derive(Args, Debug)]
#[command(next_help_heading = "Passes")]
pub struct ShowArgs {
    /// Write the IR to this folder, in text form, before the first pass and after each one:
    /// `00-input.tw`, `01-bind-target.tw`, …. It is made if it is not there; what an earlier dump
    /// left in it is removed.
    #[arg(long, value_name = "DIR")]
    dump_passes: Option<PathBuf>,
    /// Print the IR after every pass of this name to stderr; `compile` without `--emit` prints it
    /// to stdout, and nothing else. May be repeated. `tilewright passes` lists the names.
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',')]
    print_after: Vec<String>,
    /// Print how long each pass took, and what else was done, to stderr.
    #[arg(long)]
    timings: bool,
    /// Say what the compiler decided about this topic, what it decided against, and why, on
    /// stderr; without a topic, about all of them: `decisions` (stages, versions, layouts, warps,
    /// widths), `keep`, `prefetch`, `schedule`, `split-k`, `stores`. `compile` without `--emit` says it on stdout.
    #[arg(long, value_name = "TOPIC", num_args = 0..=1, default_missing_value = "all")]
    explain: Option<String>,
}

/// The code of the remarks that are orders.
const ORDERS: &str = "order";
/// What can be explained, by the codes of the remarks.
const TOPICS: [&str; 6] = [
    DECISIONS, "keep", "prefetch", "schedule", "split-k", "stores",
];
const DECISIONS: &str = "decisions";

impl ShowArgs {
    /// The first of the options that was given.
    pub fn asked(&self) -> Option<&'static str> {
        let given = [
            (self.dump_passes.is_some(), "--dump-passes"),
            (!self.print_after.is_empty(), "--print-after"),
            (self.timings, "--timings"),
            (self.explain.is_some(), "--explain"),
        ];
        let first = given.into_iter().find(|(given, _)| *given);
        first.map(|(_, name)| name)
    }

    /// Whether this topic is asked for.
    fn explains(&self, topic: &str) -> bool {
        self.explain
            .as_ref()
            .is_some_and(|t| t == "all" || t == topic)
    }

    /// Whether every pass to print after is one of these, and the topic to explain is one.
    pub fn check(&self, passes: &[&'static PassInfo]) -> Result<(), Failure> {
        if let Some(topic) = &self.explain
            && topic != "all"
            && !TOPICS.contains(&topic.as_str())
        {
            let meant = suggestion(topic, TOPICS).map_or_else(String::new, |t| format!("{t} "));
            return Err(Failure::Usage(format!(
                "`--explain {topic}`: {meant}the topics are {}, or `all`; a file goes before the option",
                TOPICS.join(", ")
            )));
        }
        for name in &self.print_after {
            if passes.iter().any(|pass| pass.name == name) {
                continue;
            }
            let known = find_pass(name)?;
            let mut names: Vec<&str> = Vec::new();
            for pass in passes {
                if !names.contains(&pass.name) {
                    names.push(pass.name);
                }
            }
            return Err(Failure::Usage(format!(
                "`--print-after {}`: the pass is none of those that are run: {}",
                known.name,
                names.join(", ")
            )));
        }
        Ok(())
    }
}

/// The pass of this name, or the names there are.
pub fn find_pass(name: &str) -> Result<&'static PassInfo, Failure> {
    passes::find(name).ok_or_else(|| {
        let names = || passes::PASSES.iter().map(|pass| pass.name);
        let meant = suggestion(name, names()).map_or_else(String::new, |text| format!("{text} "));
        Failure::Usage(format!(
            "unknown pass `{name}`; {meant}the passes are {}",
            names().collect::<Vec<_>>().join(", ")
        ))
    })
}

/// Where the IR after a pass is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrintTo {
    Stdout,
    Stderr,
    /// Into the command's object.
    Json,
}

impl PrintTo {
    /// Beside a command's result.
    pub fn beside(as_json: bool) -> PrintTo {
        match as_json {
            true => PrintTo::Json,
            false => PrintTo::Stderr,
        }
    }
}

/// Sees the passes that a command runs.
pub struct Show<'a> {
    args: &'a ShowArgs,
    to: PrintTo,
    dump: Option<Dump>,
    /// What goes into the object.
    printed: Vec<Value>,
    explained: Vec<Value>,
    /// The orders of pipelined loops, as text.
    pub orders: Vec<String>,
    /// The passes that were run.
    ran: Vec<&'static str>,
    /// The pass after which the command itself wants the function, and the function.
    pub wanted: Option<&'static str>,
    pub found: Option<Func>,
    /// The function before the passes and behind layout inference, where decisions are asked for.
    before: Option<Func>,
    placed: Option<Func>,
    decided: Vec<Value>,
    pub timings: Timings,
}

impl<'a> Show<'a> {
    /// Begins with the function as it is before the passes. A folder that cannot be written is
    /// reported at once.
    pub fn new(
        args: &'a ShowArgs,
        func: &Func,
        to: PrintTo,
        sources: &SourceMap,
    ) -> Result<Show<'a>, Failure> {
        let dump = args.dump_passes.as_ref();
        let dump = dump.map(|folder| Dump::open(folder, func)).transpose();
        let dump = dump.map_err(|d| output::fail(&[*d], sources, to == PrintTo::Json))?;
        Ok(Show {
            args,
            to,
            dump,
            printed: Vec::new(),
            explained: Vec::new(),
            orders: Vec::new(),
            ran: Vec::new(),
            wanted: None,
            found: None,
            before: args.explains(DECISIONS).then(|| func.clone()),
            placed: None,
            decided: Vec::new(),
            timings: Timings::default(),
        })
    }

    pub fn as_json(&self) -> bool {
        self.to == PrintTo::Json
    }

    /// Ends with the passes: says what was written and what was not reached. The error is that a
    /// file could not be written.
    pub fn finish(&mut self, times: Times) -> Result<(), Box<Diagnostic>> {
        self.timings.lowering = times;
        if !self.as_json() {
            if let Some(dump) = &self.dump {
                output::note(&dump.to_text());
            }
            for name in &self.args.print_after {
                if !self.ran.contains(&name.as_str()) {
                    output::note(&format!("nothing to print after {name}: it was not run\n"));
                }
            }
        }
        match self.dump.as_mut().and_then(|dump| dump.failed.take()) {
            Some(failed) => Err(failed),
            None => Ok(()),
        }
    }

    /// Says what was decided of a lowered function, where that was asked for.
    pub fn decisions(
        &mut self,
        lowered: &Func,
        target: Target,
        said: &[&Diagnostic],
        sources: &SourceMap,
    ) {
        let (Some(before), Some(placed)) = (&self.before, &self.placed) else {
            return;
        };
        let decided = Decisions::of(before, placed, lowered, target, said);
        match self.to {
            PrintTo::Stdout => output::print(&decided.to_text(sources)),
            PrintTo::Stderr => output::note(&decided.to_text(sources)),
            PrintTo::Json => self.decided.push(decided.to_json(sources)),
        }
    }

    /// Says what the passes remarked, of the topics that were asked for.
    pub fn explain(&mut self, remarks: &Diagnostics, sources: &SourceMap) {
        let orders = remarks.iter().filter(|r| r.code.0 == ORDERS);
        self.orders.extend(orders.map(|r| r.message.clone()));
        for remark in remarks.iter() {
            if remark.code.0 == ORDERS || !self.args.explains(remark.code.0) {
                continue;
            }
            let text = || format!("{}\n", remark.render(sources, false));
            match self.to {
                PrintTo::Stdout => output::print(&text()),
                PrintTo::Stderr => output::note(&text()),
                PrintTo::Json => self.explained.push(output::to_json(remark, sources)),
            }
        }
    }

    /// Prints the times, where they were asked for and do not go into the object.
    pub fn print_timings(&self) {
        if self.args.timings && !self.as_json() {
            output::note(&self.timings.to_text());
        }
    }

    /// Reports errors; the object has what was asked for.
    pub fn fail(&self, errors: &[Diagnostic], sources: &SourceMap) -> Failure {
        self.fail_with(errors, sources, json!({}))
    }

    /// The same, with what else the object is to say.
    pub fn fail_with(
        &self,
        errors: &[Diagnostic],
        sources: &SourceMap,
        mut object: Value,
    ) -> Failure {
        self.add_to(&mut object);
        output::fail_with(errors, sources, self.as_json(), object)
    }

    /// Puts what was asked for into a command's object.
    pub fn add_to(&self, object: &mut Value) {
        if let Some(dump) = &self.dump {
            object["dumped"] = dump.to_json();
        }
        if !self.args.print_after.is_empty() {
            object["printed"] = json!(self.printed);
        }
        if self.args.explain.is_some() {
            object["explained"] = json!(self.explained);
            object["decisions"] = json!(self.decided);
        }
        if self.args.timings {
            object["timings"] = self.timings.to_json();
        }
    }
}

impl Hook for Show<'_> {
    fn after(&mut self, step: Step, func: &Func) {
        self.ran.push(step.name);
        if step.name == PLACED && self.before.is_some() {
            self.placed = Some(func.clone());
        }
        if self.wanted == Some(step.name) {
            self.found = Some(func.clone());
        }
        if let Some(dump) = &mut self.dump {
            dump.add(step, func);
        }
        if !self.args.print_after.iter().any(|name| name == step.name) {
            return;
        }
        let ir = text::print(func);
        match self.to {
            PrintTo::Stdout => output::print(&format!("# after {step}\n{ir}")),
            PrintTo::Stderr => output::note(&format!("# after {step}\n{ir}")),
            PrintTo::Json => self.printed.push(json!({
                "pass": step.name, "number": step.number, "run": step.run, "text": ir,
            })),
        }
    }
}
