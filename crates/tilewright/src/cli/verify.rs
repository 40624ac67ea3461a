//! `tilewright verify`: a lowered kernel before the hazard checker, in the simulator in several
//! orders of its warps with its result compared with the reference evaluator's, its blocks looked
//! at for races with each other, and on AMD what the compiler makes of it against the waits that
//! it asks for, and in the emulator.

use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};
use tilewright::emulate::Emulator;
use tilewright::gfx9::audit::Kind;
use tilewright::ir::{Diagnostic, Dialect, Func, Level, Severity, SourceMap, Target};
use tilewright::jit::Error;
use tilewright::jit::audit::Budget;
use tilewright::lowering::{Times, Until};
use tilewright::passes;
use tilewright::schedule::hazard::{self, HazardReport};
use tilewright::sim::simt::{self, Interleaving, KernelCover, Landing, SimtOptions};
use tilewright::sim::{self, InputSpec, RunOptions, Watch};
use tilewright::verdict::{Compared, Verdict, verdict};

use super::emulated::{self, Emulated};
use super::findings::Findings;
use super::input::Loaded;
use super::lower::lower_unchecked;
use super::output::{self, Failure, Outcome};
use super::progress::Progress;
use super::show::{PrintTo, Show, ShowArgs};
use super::{KernelArgs, input, passes::parse_target, run::inputs};

/// Blocks that are simulated of a launch, where a sample is a part of the whole result.
const SAMPLED_BLOCKS: u64 = 4;
/// Launches of so many blocks are simulated in all modes where all blocks have to run.
const FEW_BLOCKS: u64 = 16;
/// Modes of larger ones.
const FEW_MODES: usize = 2;
/// Orders of warps in each mode, of a sample and of `--all`.
const ORDERS: [u64; 2] = [1, 5];

#[derive(Args, Debug)]
pub struct VerifyArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// The target that the kernel is lowered for.
    #[arg(long, default_value = Target::DEFAULT.name())]
    target: String,
    /// Simulate all blocks in all modes, not a sample of them, and emulate the compiled code of
    /// large launches too (AMD).
    #[arg(long)]
    all: bool,
    /// Orders of warps to try, in each mode: one, or five with `--all`.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Instructions that a block may do in the reference evaluator, and a warp in the simulator,
    /// before its loops are taken for endless.
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
    /// Vector instructions for addresses that a compiled hot loop may have (AMD). More is an error;
    /// without this, more than 64 is a warning.
    #[arg(long)]
    address_budget: Option<u32>,
    /// `v_readfirstlane` and `v_readlane` that a compiled hot loop may have (AMD). More is an
    /// error; without this, more than one is a warning.
    #[arg(long)]
    lane_read_budget: Option<u32>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    show: ShowArgs,
}

/// A way to simulate: when data lands, and when warps change.
type Mode = (Landing, Interleaving);

/// What the executors looked at.
#[derive(Default)]
struct Cover {
    modes: Vec<Mode>,
    /// Orders of warps in each mode.
    orders: u64,
    /// Blocks simulated in a run, and blocks of all launches.
    blocks: (u64, u64),
    /// Modes that were left out.
    left_out: usize,
    /// Whether every kernel was looked at for races between blocks.
    watched: bool,
    /// The comparison with the reference that shows the largest difference.
    compared: Option<Verdict>,
}

pub fn verify(args: &VerifyArgs) -> Outcome {
    let target = parse_target(&args.target)?;
    args.show.check(&passes::pipeline(target))?;
    let loaded = input::load(&args.kernel, target, args.json)?;
    let sources = &loaded.sources;
    let mut spec = inputs(&loaded, 0).0;
    // The reference's result, the inputs, and what the simulator makes of them.
    spec.copies = 2;
    let to = PrintTo::beside(args.json);
    let mut show = Show::new(&args.show, &loaded.func, to, sources)?;
    show.timings.front_end = Some(loaded.took);
    let (func, checked) = match loaded.func.level {
        // A schedule written by hand is checked as it stands.
        Level::Device => (loaded.func.clone(), checked(&loaded, target, &mut show)?),
        Level::Tile | Level::Loop => {
            let until = Until::Level(Level::Device);
            let lowered = lower_unchecked(&loaded.func, target, until, sources, &mut show)?;
            (lowered.func, lowered.hazards.unwrap_or_default())
        }
    };
    show.print_timings();
    let mut findings = Findings::default();
    findings.extend(checked.diagnostics().into_vec());
    let fail = |e: sim::RunError| show.fail(&e.diagnostics.into_vec(), sources);
    let progress = Progress::new(args.json);
    let expected = match loaded.func.level {
        Level::Tile => {
            let made = reference(&loaded.func, target, &spec, args, &progress, &mut findings);
            Some(made.map_err(fail)?)
        }
        Level::Loop | Level::Device => None,
    };
    let cover = simulate(
        &func,
        target,
        &spec,
        args,
        expected.as_ref(),
        &progress,
        &mut findings,
    );
    let cover = cover.map_err(fail)?;
    let usual = Budget::default();
    let budget = Budget {
        address_arithmetic: args.address_budget.unwrap_or(usual.address_arithmetic),
        lane_reads: args.lane_read_budget.unwrap_or(usual.lane_reads),
    };
    let asked = [
        (args.address_budget, Kind::AddressArithmetic),
        (args.lane_read_budget, Kind::LaneRead),
    ];
    let budgeted: Vec<Kind> = asked
        .into_iter()
        .filter_map(|(budget, kind)| budget.map(|_| kind))
        .collect();
    // Of the compilers' outputs only AMD's assembly can be read.
    let refused = |e: Error| show.fail(&e.into_diagnostics(), sources);
    let compiled = match target.machine().dialect {
        Dialect::Hip => {
            progress.doing("compiling");
            Some(Emulator::new(&func, target, sources).map_err(refused)?)
        }
        Dialect::Cuda => None,
    };
    let audits = match &compiled {
        Some(compiled) => compiled.audit(budget).map_err(refused)?,
        None => Vec::new(),
    };
    for audit in &audits {
        findings.append(audit.diagnostics(&budgeted));
    }
    let emulated = match &compiled {
        None => None,
        Some(_) if findings.has_errors() => Some(Emulated::Skipped),
        Some(_) if cover.blocks.1 > FEW_BLOCKS && !args.all => Some(Emulated::LeftOut),
        Some(compiled) => {
            let given = sim::make_inputs(&func, &spec).map_err(fail)?;
            let expected = expected.as_ref().map(|r| &r.tensors);
            let kernel = (&func, target);
            let done =
                emulated::emulate(compiled, kernel, &given, expected, &progress, &mut findings);
            Some(done.map_err(|diags| show.fail(&diags, sources))?)
        }
    };
    drop(progress);
    let hazards = findings.into_vec();
    output::warn(&hazards, sources);
    // What could not be decided is a warning: nothing wrong was found.
    let ok = !hazards.iter().any(|d| d.severity == Severity::Error);
    let proved = checked.is_clean();
    if args.json {
        let mut object = cover.to_json();
        object["ok"] = json!(ok);
        object["target"] = json!(target.name());
        object["proved"] = json!(proved);
        object["hazards"] = list(&hazards, sources);
        object["emulated"] = emulated.map_or(Value::Null, |e| e.to_json());
        object["compiled"] = audits.iter().map(super::amd::audit_json).collect();
        show.add_to(&mut object);
        output::print_json(&object);
    } else {
        let proof = match (ok, proved) {
            (false, _) => "something is wrong",
            (true, true) => "proved free of hazards, nothing wrong",
            (true, false) => "not proved free of hazards, nothing wrong",
        };
        output::print(&format!("{} for {target}: {proof}\n", func.name));
        output::print(&cover.to_text());
        for audit in &audits {
            output::print(&super::amd::audit_text(audit));
        }
        if let Some(emulated) = emulated {
            output::print(&emulated.to_text());
        }
    }
    if ok { Ok(()) } else { Err(Failure::User) }
}

/// What the hazard checker says of a function that no pass is run on.
fn checked(loaded: &Loaded, target: Target, show: &mut Show<'_>) -> Result<HazardReport, Failure> {
    let start = Instant::now();
    let report = hazard::check(&loaded.func, target);
    let times = Times {
        passes: Vec::new(),
        hazards: Some(start.elapsed()),
    };
    match show.finish(times) {
        Ok(()) => Ok(report),
        Err(d) => Err(show.fail(&[*d], &loaded.sources)),
    }
}

fn list(hazards: &[Diagnostic], sources: &SourceMap) -> Value {
    hazards
        .iter()
        .map(|d| output::to_json(d, sources))
        .collect()
}

/// What the kernel computes, and whether its blocks are watched for races with each other.
struct Reference {
    tensors: sim::Args,
    watched: bool,
}

fn reference(
    func: &Func,
    target: Target,
    spec: &InputSpec,
    args: &VerifyArgs,
    progress: &Progress,
    findings: &mut Findings,
) -> Result<Reference, sim::RunError> {
    progress.blocks("reference");
    let tell = |p: sim::Progress| progress.at(p.blocks_done, p.blocks);
    let options = RunOptions {
        step_limit: args.max_steps.unwrap_or(sim::DEFAULT_STEPS),
        warp_size: target.machine().warp_size,
        progress: Some(&tell),
        ..RunOptions::default()
    };
    let mut tensors = sim::make_inputs(func, spec)?;
    let report = sim::run(func, &mut tensors, &options)?;
    findings.extend(report.races.into_vec());
    let watched = report.kernels.iter().all(|k| k.watch == Watch::Watched);
    Ok(Reference { tensors, watched })
}

/// Runs the lowered function in several modes and orders.
fn simulate(
    func: &Func,
    target: Target,
    spec: &InputSpec,
    args: &VerifyArgs,
    expected: Option<&Reference>,
    progress: &Progress,
    findings: &mut Findings,
) -> Result<Cover, sim::RunError> {
    let mut cover = Cover {
        orders: args.seeds.unwrap_or(ORDERS[usize::from(args.all)]),
        watched: expected.is_none_or(|r| r.watched),
        ..Cover::default()
    };
    let given = sim::make_inputs(func, spec)?;
    let racing = findings.has_errors();
    for (number, mode) in modes().into_iter().enumerate() {
        if !args.all && cover.blocks.0 > FEW_BLOCKS && number >= FEW_MODES {
            cover.left_out += 1;
            continue;
        }
        cover.modes.push(mode);
        for order in 0..cover.orders {
            progress.blocks(&format!("{}, order {}", name(mode), order + 1));
            let tell = |done, blocks| progress.at(done, blocks);
            let options = SimtOptions {
                // Each mode has orders of its own, so that more of them are seen.
                seed: order * modes().len() as u64 + number as u64,
                landing: mode.0,
                interleaving: mode.1,
                step_limit: args.max_steps.unwrap_or(simt::DEFAULT_STEPS),
                // Without a reference this is where races between blocks are found.
                sample: (!args.all && expected.is_some()).then_some(SAMPLED_BLOCKS),
                progress: Some(&tell),
                ..SimtOptions::default()
            };
            let mut found = given.try_clone(func)?;
            let report = simt::run(func, target, &mut found, &options)?;
            findings.extend(report.diagnostics().into_vec());
            let sum = |f: fn(&KernelCover) -> u64| report.kernels.iter().map(f).sum::<u64>();
            cover.blocks = (sum(|k| k.ran), sum(|k| k.blocks));
            cover.watched &= report.kernels.iter().all(|k| k.watch == Watch::Watched);
            // Where something is wrong already, values say nothing new.
            if let Some(expected) = expected
                && report.is_clean()
                && !racing
            {
                let which = match cover.blocks.0 == cover.blocks.1 {
                    true => Compared::All,
                    false => Compared::Sample,
                };
                let judged = verdict(func, &found, &expected.tensors, which);
                findings.extend(judged.diagnostic(func));
                cover.take(judged);
            }
        }
    }
    Ok(cover)
}

/// All modes; the first two differ in everything.
fn modes() -> Vec<Mode> {
    let [early, dma_early, dma_late, late] = Landing::ALL;
    let (blocked, every) = (Interleaving::UntilBlocked, Interleaving::EveryStatement);
    vec![
        (early, blocked),
        (late, every),
        (late, blocked),
        (early, every),
        (dma_late, blocked),
        (dma_late, every),
        (dma_early, blocked),
        (dma_early, every),
    ]
}

fn name((landing, interleaving): Mode) -> String {
    format!("{landing:?} {interleaving:?}")
}

impl Cover {
    fn take(&mut self, verdict: Verdict) {
        let worse = |old: &Verdict| (verdict.ok, -verdict.max_abs_err) < (old.ok, -old.max_abs_err);
        if self.compared.as_ref().is_none_or(worse) {
            self.compared = Some(verdict);
        }
    }

    fn sampled(&self) -> bool {
        self.left_out > 0 || self.blocks.0 < self.blocks.1
    }

    fn to_json(&self) -> Value {
        let mut object = match &self.compared {
            Some(verdict) => output::verdict_json(verdict),
            None => json!({ "max_abs_err": null }),
        };
        object["modes"] = self.modes.iter().map(|&m| name(m)).collect();
        object["orders"] = json!(self.orders);
        object["sampled"] = json!(self.sampled());
        object["blocks_simulated"] = json!(self.blocks.0);
        object["blocks"] = json!(self.blocks.1);
        object["blocks_watched"] = json!(self.watched);
        object
    }

    fn to_text(&self) -> String {
        let (ran, blocks) = self.blocks;
        let mut text = format!(
            "simulated {ran} of {blocks} blocks in {} modes, {} orders of warps each",
            self.modes.len(),
            self.orders
        );
        if self.left_out > 0 {
            text += &format!("; {} modes left out", self.left_out);
        }
        if self.sampled() {
            text += " (`--all` for the rest)";
        }
        text.push('\n');
        text += &match &self.compared {
            Some(v) => format!(
                "compared {} elements with the reference: largest difference {:.3e}; {} not compared\n",
                v.elements, v.max_abs_err, v.unwritten
            ),
            None => "values not compared with the reference\n".to_owned(),
        };
        text += match self.watched {
            true => "races between blocks: looked at all blocks\n",
            false => {
                "races between blocks: not looked at, for the blocks order themselves by atomics\n"
            }
        };
        text
    }
}
