//! Tuning: which configuration of a kernel is the fastest that is right.
//!
//! [`tune`] takes the kernel of each configuration as tile IR, leaves out what costs far more than
//! the others ([`cost`](cost::cost)), and hands the rest to the tuner ([`tilewright_tune`]) with one
//! of three laboratories: a GPU, the cycle model of an AMD machine, or the estimate alone. Every
//! kernel is lowered with all checks, compared in values, and only then timed. What was found is
//! kept under a key of the IR of all configurations, the sizes, the machine and both compilers.

pub mod cost;
mod gpu;
mod model;

use std::fmt;

use tilewright_ir::{Diagnostic, Func, Machine, SourceMap, Target, text};
use tilewright_runtime::cache::Cache;
use tilewright_runtime::device::{self, Device};
use tilewright_runtime::env::Env;
use tilewright_sim::{Args, InputSpec, describe_inputs, make_inputs, resolve};

pub use tilewright_tune::space::{self, Config};
pub use tilewright_tune::{Event, Fate, Options, Report, Row, Rules, Unit};

use crate::emulate::Emulator;
use crate::jit::gpu::{best_target, check_target, vendor};
use crate::jit::{COMPILER, Compiler, Error};

/// The kernel of one configuration.
#[derive(Clone, Debug)]
pub struct Subject {
    pub func: Func,
    pub sources: SourceMap,
    /// Approximate division and functions.
    pub fast_math: bool,
}

/// What times configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The first GPU of the target's vendor.
    Gpu,
    /// The cycle model of a compute unit, for gfx942 and gfx950: one block's cycles, times the
    /// rounds that the grid takes.
    Model,
    /// The estimate from the tile IR.
    Cost,
}

impl On {
    pub const ALL: [On; 3] = [On::Gpu, On::Model, On::Cost];

    pub const fn name(self) -> &'static str {
        match self {
            On::Gpu => "gpu",
            On::Model => "model",
            On::Cost => "cost",
        }
    }

    pub fn from_name(name: &str) -> Option<On> {
        On::ALL.into_iter().find(|on| on.name() == name)
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a reference program of the user's says of a configuration.
pub type Judge<'a> = &'a (dyn Fn(usize) -> Result<(), String> + Sync);

/// What is tuned, and how.
pub struct Request<'a> {
    pub configs: &'a [Config],
    /// The kernel of each, or why there is none.
    pub subjects: &'a [Result<Subject, String>],
    /// Sizes, scalars and the seed of the inputs.
    pub spec: &'a InputSpec,
    pub target: Option<Target>,
    /// Without a choice it is a GPU where there is one, else the estimate.
    pub on: Option<On>,
    /// Only so many are tried, those of the least estimate.
    pub keep: Option<usize>,
    pub options: Options<'a>,
    /// Compares a configuration's results with those of a program of the user's. Such results are
    /// not kept on disk: nothing says whether the program changed.
    pub judge: Option<Judge<'a>>,
    /// Where results are kept.
    pub cache: Cache,
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("configs", &self.configs)
            .field("target", &self.target)
            .field("on", &self.on)
            .finish_non_exhaustive()
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Tuned {
    pub report: Report,
    pub target: Target,
    pub on: On,
    /// The machine that was measured.
    pub device: String,
    /// Whether an earlier result was found.
    pub stored: bool,
}

/// Blocks of a large launch that are compared with the reference evaluator.
const CHECKED_BLOCKS: u64 = 8;

/// Chooses among configurations.
pub fn tune(request: Request<'_>, tell: &(dyn Fn(Event<'_>) + Sync)) -> Result<Tuned, Error> {
    let env = Env::process();
    let (on, device) = laboratory(&request)?;
    let target = match (&device, request.target) {
        (_, Some(target)) => target,
        (Some(device), None) => best_target(device.info())?,
        (None, None) => match on {
            On::Model => {
                let modelled = Target::ALL.iter().rev().find(|t| Emulator::runs(**t));
                modelled.copied().unwrap_or(Target::DEFAULT)
            }
            On::Gpu | On::Cost => Target::DEFAULT,
        },
    };
    if let Some(device) = &device {
        check_target(target, device.info())?;
    }
    let compiler = match on {
        On::Gpu => Some(Compiler::find(target, &env)?),
        On::Model | On::Cost => None,
    };
    let machine = target.machine();
    let mut fates = Vec::new();
    let mut costs = Vec::new();
    for subject in request.subjects {
        fates.push(subject.as_ref().err().map(|why| Fate::Failed(why.clone())));
        let known = subject.as_ref().ok();
        costs.push(known.and_then(|s| estimate(&s.func, request.spec, machine)));
    }
    if let Some(keep) = request.keep {
        leave_out(&mut fates, &costs, keep);
    }
    let named = match &device {
        Some(device) => format!("{} {}", device.info().name, device.info().arch()),
        None => format!("{on} of {target}"),
    };
    let work = || {
        let shared = Shared {
            subjects: request.subjects,
            spec: request.spec,
            target,
            judge: request.judge,
        };
        let (configs, fates) = (request.configs, fates.clone());
        let options = &request.options;
        match (&device, &compiler) {
            (Some(device), Some(compiler)) => {
                let lab = gpu::Gpu::new(shared, device.clone(), compiler);
                tilewright_tune::tune(&lab, configs, fates, options, tell)
            }
            _ => {
                let lab = model::Model::new(shared, on, &costs);
                tilewright_tune::tune(&lab, configs, fates, options, tell)
            }
        }
    };
    let (report, stored) = match request.judge {
        Some(_) => (work(), false),
        None => {
            let mut key = tilewright_tune::store::key(request.configs)
                .part("on", on.name())
                .part("target", target.name())
                .part("device", facts(device.as_ref()))
                .part("compiler", COMPILER)
                .part("sizes", format!("{:?}", request.spec))
                .part("keep", format!("{:?}", request.keep))
                .part("rules", format!("{:?}", request.options.rules))
                .part("checked", format!("{}", !request.options.unchecked));
            if let Some(compiler) = &compiler {
                key = key.part("toolchain", compiler.identity().map_err(Error::Toolchain)?);
            }
            for subject in request.subjects {
                key = match subject {
                    Ok(s) => key
                        .part("ir", text::print(&s.func))
                        .part("fast_math", format!("{}", s.fast_math)),
                    Err(why) => key.part("no ir", why),
                };
            }
            let name = request.subjects.iter().flatten().map(|s| &*s.func.name);
            let label = format!("tuned {} {named}", name.clone().next().unwrap_or("nothing"));
            let key = key.finish();
            tilewright_tune::store::stored(request.cache, &key, &label, request.configs, work)
        }
    };
    Ok(Tuned {
        report,
        target,
        on,
        device: named,
        stored,
    })
}

/// What times, and the GPU where it is one.
fn laboratory(request: &Request<'_>) -> Result<(On, Option<Device>), Error> {
    let open = || match request.target.map(vendor) {
        Some(vendor) => device::open(vendor, 0),
        None => device::open_any(),
    };
    match request.on {
        Some(On::Gpu) => Ok((On::Gpu, Some(open()?))),
        Some(on @ On::Model) => match request.target.is_none_or(Emulator::runs) {
            true => Ok((on, None)),
            false => Err(Error::plain(
                "tune-model",
                tilewright_ir::Span::NONE,
                "the cycle model is of gfx942 and gfx950",
            )),
        },
        Some(on @ On::Cost) => Ok((on, None)),
        None => Ok(match open() {
            Ok(device) => (On::Gpu, Some(device)),
            Err(_) => (On::Cost, None),
        }),
    }
}

/// Everything of a GPU that times may depend on.
fn facts(device: Option<&Device>) -> String {
    device.map_or(String::new(), |device| {
        let mut info = device.info().clone();
        // The same model in another slot measures the same.
        info.ordinal = 0;
        format!("{info:?}")
    })
}

fn estimate(func: &Func, spec: &InputSpec, machine: &Machine) -> Option<f64> {
    // Shapes are enough.
    let resolved = resolve(func, &mut describe_inputs(func, spec).ok()?).ok()?;
    cost::cost(func, &resolved, machine)
}

/// Gives those a fate whose estimates are not among the least.
fn leave_out(fates: &mut [Option<Fate>], costs: &[Option<f64>], keep: usize) {
    let mut known: Vec<(f64, usize)> = costs
        .iter()
        .enumerate()
        .filter(|(at, _)| fates[*at].is_none())
        .filter_map(|(at, cost)| Some(((*cost)?, at)))
        .collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let least = known.first().map_or(1.0, |(cost, _)| *cost);
    for (cost, at) in known.into_iter().skip(keep.max(1)) {
        fates[at] = Some(Fate::LeftOut(format!(
            "its estimate is {cost:.0} cycles, {:.2} of the least; {keep} are tried",
            cost / least.max(1.0)
        )));
    }
}

/// What all laboratories have.
struct Shared<'a> {
    subjects: &'a [Result<Subject, String>],
    spec: &'a InputSpec,
    target: Target,
    judge: Option<Judge<'a>>,
}

impl Shared<'_> {
    fn subject(&self, at: usize) -> Result<&Subject, String> {
        match self.subjects.get(at) {
            Some(Ok(subject)) => Ok(subject),
            Some(Err(why)) => Err(why.clone()),
            None => Err("there is no such configuration".to_owned()),
        }
    }

    fn inputs(&self, subject: &Subject) -> Result<Args, String> {
        let made = make_inputs(&subject.func, self.spec);
        made.map_err(|e| said(e.diagnostics.iter(), &subject.sources))
    }
}

/// What is wrong, on one line: the first error and its place.
fn said<'a>(diags: impl IntoIterator<Item = &'a Diagnostic>, sources: &SourceMap) -> String {
    let Some(first) = diags.into_iter().next() else {
        return "an error without a diagnostic".to_owned();
    };
    let text = format!("{}: {}", first.code.0, first.message);
    match sources.line_col(first.primary.span) {
        Some((line, _)) => format!("{text} ({}:{line})", sources.name(first.primary.span.file)),
        None => text,
    }
}

fn said_of(error: Error, subject: &Subject) -> String {
    said(&error.into_diagnostics(), &subject.sources)
}
