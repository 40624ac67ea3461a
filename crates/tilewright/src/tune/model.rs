//! The laboratories without a GPU: the cycle model of an AMD machine, and the estimate. Both check
//! lowered kernels in the simulator of the target, against the reference evaluator.

use tilewright_gfx9::cycles::{self, Machine};
use tilewright_gfx9::emu::Landing;
use tilewright_ir::{Func, Severity};
use tilewright_sim::simt::{self, SimtOptions};
use tilewright_sim::{self as sim, Args, RunOptions, resolve};
use tilewright_tune::{Lab, Unit};

use super::{CHECKED_BLOCKS, On, Shared, Subject, said, said_of};
use crate::call;
use crate::emulate::{self, Emulator};
use crate::jit;
use crate::jit::audit::Budget;
use crate::verdict::{Compared, summation, verdict_within};

/// Grids of up to so many blocks are run whole.
const FEW_BLOCKS: u64 = 64;

pub(super) struct Model<'a> {
    shared: Shared<'a>,
    on: On,
    costs: &'a [Option<f64>],
}

/// A lowered kernel.
pub(super) struct Built {
    func: Func,
    cycles: f64,
}

impl<'a> Model<'a> {
    pub fn new(shared: Shared<'a>, on: On, costs: &'a [Option<f64>]) -> Model<'a> {
        Model { shared, on, costs }
    }

    /// Cycles by the model: a block's, for each round of blocks over the compute units.
    fn modelled(&self, subject: &Subject, lowered: &Func) -> Result<f64, String> {
        let target = self.shared.target;
        let fail = |e| said_of(e, subject);
        let emulator = Emulator::new(lowered, target, &subject.sources).map_err(fail)?;
        let audits = emulator.audit(Budget::default()).map_err(fail)?;
        let wrong = audits.iter().flat_map(|a| a.diagnostics(&[]));
        if let Some(wrong) = wrong.into_iter().find(|d| d.severity == Severity::Error) {
            return Err(said([&wrong], &subject.sources));
        }
        let mut args = self.shared.inputs(subject)?;
        let resolved = resolve(lowered, &mut args)
            .map_err(|e| said(e.diagnostics.iter(), &subject.sources))?;
        let options = emulate::Options {
            landing: Landing::Early,
            ..emulate::Options::default()
        };
        let Some(last) = lowered.kernels.last() else {
            return Err("it has no kernel".to_owned());
        };
        let grid = call::grid(lowered, last, &resolved).map_err(fail)?;
        let blocks = grid.iter().map(|&n| u64::from(n)).product::<u64>();
        let middle = u32::try_from(blocks / 2).unwrap_or(0);
        let (traced, findings) = emulator.trace(&mut args, &options, middle).map_err(fail)?;
        if !findings.is_empty() {
            return Err(said(&findings, &subject.sources));
        }
        let machine = Machine::named(target.name())
            .ok_or_else(|| format!("there is no cycle model of {target}"))?;
        let timing = cycles::time(traced.function, &traced.trace, &machine)
            .map_err(|e| format!("the cycle model: {e}"))?;
        let rounds = blocks.div_ceil(u64::from(machine.compute_units.max(1)));
        Ok(rounds as f64 * timing.cycles as f64)
    }
}

impl Lab for Model<'_> {
    type Built = Built;
    type Answer = (usize, Args);

    fn compile(&self, at: usize) -> Result<Built, String> {
        let subject = self.shared.subject(at)?;
        let lowered = jit::lower(&subject.func, self.shared.target);
        let (func, _) = lowered.map_err(|e| said_of(e, subject))?;
        let cycles = match self.on {
            On::Model => self.modelled(subject, &func)?,
            On::Gpu | On::Cost => {
                let cost = self.costs.get(at).copied().flatten();
                cost.ok_or("the sizes of the call do not say how much there is to do")?
            }
        };
        Ok(Built { func, cycles })
    }

    fn answer(&self, at: usize, built: &Built) -> Result<Option<(usize, Args)>, String> {
        let subject = self.shared.subject(at)?;
        let fail = |e: sim::RunError| said(e.diagnostics.iter(), &subject.sources);
        let target = self.shared.target;
        let mut found = self.shared.inputs(subject)?;
        let mut expected = found.try_clone(&subject.func).map_err(fail)?;
        let blocks = resolve(&built.func, &mut found).ok().and_then(|call| {
            let grids = built
                .func
                .kernels
                .iter()
                .map(|k| call::grid(&built.func, k, &call));
            let blocks =
                grids.map(|g| Some(g.ok()?.iter().map(|&n| u64::from(n)).product::<u64>()));
            blocks.sum::<Option<u64>>()
        });
        let is_small = blocks.is_some_and(|n| n <= FEW_BLOCKS);
        let sample = (!is_small).then_some(CHECKED_BLOCKS);
        let options = SimtOptions {
            sample,
            ..SimtOptions::default()
        };
        let report = simt::run(&built.func, target, &mut found, &options).map_err(fail)?;
        if !report.is_clean() {
            return Err(said(report.diagnostics().iter(), &subject.sources));
        }
        let options = RunOptions {
            sample,
            warp_size: target.machine().warp_size,
            ..RunOptions::default()
        };
        let report = sim::run(&subject.func, &mut expected, &options).map_err(fail)?;
        if report.races.has_errors() {
            return Err(said(report.races.iter(), &subject.sources));
        }
        let whole = report.kernels.iter().all(|k| k.ran == k.blocks);
        let which = match whole {
            true => Compared::All,
            false => Compared::Sample,
        };
        let sums = summation(&subject.func, target);
        let judged = verdict_within(&subject.func, &found, &expected, which, sums);
        if let Some(wrong) = judged.diagnostic(&subject.func) {
            return Err(said([&wrong], &subject.sources));
        }
        match self.shared.judge {
            Some(judge) => judge(at).map(|()| None),
            None => Ok(whole.then_some((at, found))),
        }
    }

    fn agree(&self, answer: &(usize, Args), other: &(usize, Args)) -> Result<(), String> {
        let subject = self.shared.subject(answer.0)?;
        let sums = summation(&subject.func, self.shared.target);
        let judged = verdict_within(&subject.func, &answer.1, &other.1, Compared::All, sums);
        match judged.wrong.first() {
            None => Ok(()),
            Some(wrong) => Err(format!("{} elements of `{}`", wrong.elements, wrong.tensor)),
        }
    }

    fn verify(&self, _: usize, _: &(usize, Args)) -> Result<(), String> {
        // Each was compared with its own reference before it had an answer.
        Ok(())
    }

    fn knows_what_is_right(&self) -> bool {
        self.shared.judge.is_some()
    }

    fn round(&self, built: &[&Built]) -> Vec<Result<f64, String>> {
        built.iter().map(|b| Ok(b.cycles)).collect()
    }

    fn unit(&self) -> Unit {
        Unit::Cycles
    }
}
