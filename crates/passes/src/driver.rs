//! The driver: passes in a row over one function.
//!
//! Whoever runs more than one pass does it here: the compiler and its command line, tests,
//! benchmarks, random programs. The driver verifies the function after each pass, stops where it
//! is told to, takes the time of each pass, and shows each to a [`Hook`].
//!
//! A function that the verifier refuses after a pass is a mistake of that pass, and the error
//! names it.

use std::fmt;
use std::time::{Duration, Instant};

use tilewright_ir::{Code, Diagnostic, Diagnostics, Func, Level, Span, Target, verify};
use tilewright_schedule::hazard::HazardReport;

use crate::{Changed, Foreseen, Pass, PassInfo, pipeline};

const BROKEN_IR: Code = Code("broken-ir");
const NO_SUCH_PASS: Code = Code("no-such-pass");

/// What is run. The default is the target's whole pipeline, verified.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// These passes in this order, instead of the target's pipeline.
    pub passes: Option<Vec<&'static PassInfo>>,
    pub until: Until<'a>,
    /// Whether the verifier looks at the function after each pass.
    pub verify: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            passes: None,
            until: Until::Level(Level::Device),
            verify: true,
        }
    }
}

/// How far passes are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until<'a> {
    /// To the last state of this level.
    Level(Level),
    /// Up to and with the first pass of this name.
    Pass(&'a str),
}

/// A pass at its place among those that are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The pass.
    pub name: &'static str,
    /// Its place, from one, and how many places there are.
    pub number: u32,
    pub of: u32,
    /// Which of the passes of this name it is, from one, and how many of them there are.
    pub run: u32,
    pub runs: u32,
}

/// `` `simplify` (pass 13 of 17, run 2 of 3) ``
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (pass {} of {}", self.name, self.number, self.of)?;
        if self.runs > 1 {
            write!(f, ", run {} of {}", self.run, self.runs)?;
        }
        f.write_str(")")
    }
}

/// Sees the function between the passes. A closure that takes a step and the function is called
/// after each pass.
pub trait Hook {
    /// The function before a pass, and what is done instead of it.
    fn before(&mut self, _step: Step, _func: &Func) -> Action {
        Action::Run
    }

    /// What a pass made that did not refuse the function. The verifier has not seen it yet.
    fn after(&mut self, _step: Step, _func: &Func) {}
}

impl<F: FnMut(Step, &Func)> Hook for F {
    fn after(&mut self, step: Step, func: &Func) {
        self(step, func);
    }
}

/// What is done at a step.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// The pass is run.
    Run,
    /// Nothing: the function stays as it is, and the step has no time.
    Skip,
    /// This is run in place of the pass, as if it were the pass.
    Replace(Pass),
}

/// How long a step took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    pub step: Step,
    pub pass: Duration,
    /// The verifier after it; zero where it was not asked.
    pub verify: Duration,
}

/// What passes said and how long they took.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// No errors.
    pub said: Diagnostics,
    /// What was decided and why, for who asks.
    pub remarks: Diagnostics,
    /// One row for each step that was run, the one that failed among them.
    pub timings: Vec<Timing>,
    /// What the hazard checker says of the function, where the last pass has asked it.
    pub hazards: Option<HazardReport>,
}

/// Why passes did not come to their end. The function is left as the last of them made it.
#[derive(Clone, Debug)]
pub struct Failure {
    pub cause: Cause,
    /// What the failing pass said, or what the verifier found with an error before it that names
    /// the pass.
    pub errors: Diagnostics,
    /// Of the passes before it.
    pub report: Box<Report>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A pass refused the function.
    Refused(Step),
    /// A pass made something that the verifier refuses.
    Broken(Step),
    /// The pass to stop after is none of those to run.
    NoSuchPass,
}

/// Runs passes over a function.
pub fn run(func: &mut Func, target: Target, options: &Options<'_>) -> Result<Report, Failure> {
    run_with(func, target, options, &mut |_: Step, _: &Func| {})
}

/// Runs passes over a function and shows each to the hook.
pub fn run_with(
    func: &mut Func,
    target: Target,
    options: &Options<'_>,
    hook: &mut dyn Hook,
) -> Result<Report, Failure> {
    let passes = match &options.passes {
        Some(passes) => passes.clone(),
        None => pipeline(target),
    };
    let mut report = Report::default();
    if let Until::Pass(last) = options.until
        && passes.iter().all(|pass| pass.name != last)
    {
        return Err(Failure {
            cause: Cause::NoSuchPass,
            errors: no_such_pass(last, &passes),
            report: Box::new(report),
        });
    }
    let mut foreseen: Option<Box<Foreseen>> = None;
    for (step, pass) in steps(&passes).into_iter().zip(&passes) {
        if let Until::Level(level) = options.until
            && func.level.max(pass.makes.unwrap_or(func.level)) > level
        {
            break;
        }
        let known = foreseen.take();
        let (run, known) = match hook.before(step, func) {
            Action::Run => (Some(pass.run), known),
            Action::Replace(other) => (Some(other), None),
            Action::Skip => (None, None),
        };
        if let Some(run) = run {
            let done = one(func, target, (step, run, known), options, hook, &mut report);
            foreseen = match done {
                Ok(foreseen) => foreseen,
                Err((cause, errors)) => {
                    return Err(Failure {
                        cause,
                        errors,
                        report: Box::new(report),
                    });
                }
            };
        }
        if options.until == Until::Pass(step.name) {
            break;
        }
    }
    Ok(report)
}

/// One step, with all that belongs to it. What it and those behind it come to may be known; gives
/// what is known of those behind it.
fn one(
    func: &mut Func,
    target: Target,
    (step, run, mut known): (Step, Pass, Option<Box<Foreseen>>),
    options: &Options<'_>,
    hook: &mut dyn Hook,
    report: &mut Report,
) -> Result<Option<Box<Foreseen>>, (Cause, Diagnostics)> {
    let mut said = Diagnostics::new();
    let start = Instant::now();
    let changed = match known.as_mut().and_then(|known| known.take(step.name)) {
        Some(passed) => {
            (*func, said) = (passed.func, passed.said);
            passed.changed
        }
        None => {
            known = None;
            run(func, target, &mut said)
        }
    };
    let mut timing = Timing {
        step,
        pass: start.elapsed(),
        verify: Duration::ZERO,
    };
    report.hazards = None;
    match changed {
        Changed::Checked(hazards) => report.hazards = Some(hazards),
        Changed::Foreseen(foreseen) => known = Some(foreseen),
        Changed::Yes | Changed::No => {}
    }
    report.remarks.extend(said.take_remarks());
    if said.has_errors() {
        report.timings.push(timing);
        return Err((Cause::Refused(step), said));
    }
    report.said.extend(said.into_vec());
    hook.after(step, func);
    let start = Instant::now();
    let sound = match options.verify {
        true => verify::verify(func),
        false => Ok(()),
    };
    if options.verify {
        timing.verify = start.elapsed();
    }
    report.timings.push(timing);
    match sound {
        Ok(()) => Ok(known),
        Err(found) => Err((Cause::Broken(step), broken(step, found))),
    }
}

/// The passes with their places.
pub fn steps(passes: &[&'static PassInfo]) -> Vec<Step> {
    let named = |passes: &[&PassInfo], name| {
        let same = passes.iter().filter(|pass| pass.name == name);
        same.count() as u32
    };
    let each = passes.iter().enumerate().map(|(at, pass)| Step {
        name: pass.name,
        number: at as u32 + 1,
        of: passes.len() as u32,
        run: named(&passes[..=at], pass.name),
        runs: named(passes, pass.name),
    });
    each.collect()
}

fn broken(step: Step, found: Vec<Diagnostic>) -> Diagnostics {
    let message = format!("{step} made IR that the verifier refuses");
    let first = Diagnostic::error(BROKEN_IR, Span::NONE, message)
        .note("this is a mistake of the compiler, not of the kernel")
        .help(
            "please report it together with the kernel; `--dump-passes DIR` writes the IR after \
             each pass",
        );
    let mut errors = Diagnostics::new();
    errors.push(first);
    let place = format!("found in the IR after {step}");
    errors.extend(found.into_iter().map(|d| d.note(place.clone())));
    errors
}

fn no_such_pass(name: &str, passes: &[&PassInfo]) -> Diagnostics {
    let names: Vec<&str> = passes.iter().map(|pass| pass.name).collect();
    let message = format!("no pass `{name}` is run, so nothing ends after it");
    let mut errors = Diagnostics::new();
    errors.push(
        Diagnostic::error(NO_SUCH_PASS, Span::NONE, message)
            .note(format!("what is run: {}", names.join(", "))),
    );
    errors
}

impl Failure {
    /// Where it happened.
    pub fn step(&self) -> Option<Step> {
        match self.cause {
            Cause::Refused(step) | Cause::Broken(step) => Some(step),
            Cause::NoSuchPass => None,
        }
    }

    /// All that was said, warnings of earlier passes first.
    pub fn into_diagnostics(self) -> Diagnostics {
        let mut all = self.report.said;
        all.extend(self.errors.into_vec());
        all
    }
}
