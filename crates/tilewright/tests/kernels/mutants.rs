//! Nothing that was derived for a pipelined loop can be left out.
//!
//! Each wait of a pipelined example is loosened by one, each commit, fence and barrier removed, each
//! slot index moved to each other version, one at a time. The hazard checker and the simulator must
//! each report every one of these mutants. Loosening stands for dropping: a wait for nothing at
//! all orders less than a wait for all but one more. A wait at the limit of its counter cannot be
//! loosened and is dropped instead.
//!
//! Warp barriers are changed on NVIDIA alone: on AMD lanes are in step, and they only keep the
//! compiler from moving accesses.
//!
//! The simulator runs the first block of the grid, where copies land late. Where it finds nothing
//! it gets other modes, the whole grid and other orders of warps. The cases are those whose loops
//! run long enough ([`oracle::long_cases`]): a loop that runs once carries nothing to its next
//! iteration.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::{Failed, Trial};
use tilewright::ir::{
    BarrierKind, Block, Buffer, DeviceOp, Expr, ExprKind, FenceKind, Func, LoopKind, Scope,
    SourceMap, Span, Stmt, StmtKind, Target, ThreadOp, visit,
};
use tilewright::schedule::hazard;
use tilewright::schedule::order::wait_limit;
use tilewright::sim::Args;
use tilewright::sim::simt::{self, Landing, SimtOptions, When};

use super::landings::landings;
use super::stages::{is_pipelined, set_stages, too_large};
use super::{TARGETS, arguments, has_group_products, lower, stage};
use crate::oracle::{self, Case};

/// Stages that loops are given, those that fit first.
const STAGES: [u32; 2] = [3, 2];

/// Iterations, beyond the stages, of a loop in which everything is needed: a version is used
/// again, and the iteration that uses it again is followed by another.
const MORE: u64 = 2;

/// Orders of warps in which the whole grid is run.
const SEEDS: u64 = 2;

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![Trial::test(
        "every pipelined kernel has a long case",
        every_kernel_has_a_long_case,
    )];
    for case in oracle::long_cases() {
        for target in TARGETS.into_iter().chain([Target::Sm90a]) {
            let title = format!("mutants {target} {}:{}", case.file, case.kernel);
            trials.push(Trial::test(title, move || all_are_found(case, target)));
        }
    }
    trials
}

fn every_kernel_has_a_long_case() -> Result<(), Failed> {
    let mut kernels = BTreeSet::new();
    for case in oracle::all_cases() {
        if !kernels.contains(&(case.file, case.kernel)) && is_pipelined(case) {
            kernels.insert((case.file, case.kernel));
        }
    }
    for case in oracle::long_cases() {
        let lengths = lengths(&stage(case, &mut SourceMap::new())?);
        let enough = u64::from(STAGES[0]) + MORE;
        if lengths.into_iter().flatten().any(|trips| trips < enough) {
            return Err(format!("{} has a shorter loop than {enough}", case.title()).into());
        }
        kernels.remove(&(case.file, case.kernel));
    }
    match kernels.first() {
        None => Ok(()),
        Some((file, kernel)) => Err(format!("{file}:{kernel} has no long case").into()),
    }
}

/// How often the pipelined loops of a kernel run, where that is known.
fn lengths(func: &Func) -> Vec<Option<u64>> {
    let mut lengths = Vec::new();
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::For(l) = &stmt.kind
                && let LoopKind::Pipelined(_) = l.kind
            {
                lengths.push(l.axes[0].const_trip_count());
            }
        });
    }
    lengths
}

/// A lowered case with what it gives when nothing is wrong.
struct Subject {
    target: Target,
    func: Func,
    sources: SourceMap,
    given: Args,
    runs: Vec<Run>,
    /// By run, what comes out; none where the function is not right by itself.
    expected: RefCell<BTreeMap<usize, Option<Outcome>>>,
}

/// All tensors, to the last bit.
type Outcome = Vec<Vec<u64>>;

/// One way to run a function.
#[derive(Clone, Copy)]
struct Run {
    /// Only the first block of the grid.
    first: bool,
    seed: u64,
    landing: Landing,
}

impl Subject {
    fn of(case: &'static Case, target: Target) -> Result<Subject, Failed> {
        let mut sources = SourceMap::new();
        let mut func = stage(case, &mut sources)?;
        for stages in STAGES {
            let mut more = func.clone();
            set_stages(&mut more, stages);
            if too_large(more.clone(), target, &sources).is_none() {
                func = more;
                break;
            }
        }
        let func = lower(func, target, &sources)?;
        let runs = runs(&func);
        let (given, _) = arguments(&func, case)?;
        Ok(Subject {
            given,
            target,
            func,
            sources,
            runs,
            expected: RefCell::default(),
        })
    }

    /// Whether the simulator reports a mutant: a finding, another result, or no end.
    fn shows(&self, mutant: &Func) -> Result<bool, Failed> {
        for (at, run) in self.runs.iter().enumerate() {
            let known = self.expected.borrow().contains_key(&at);
            if !known {
                let expected = self.run(&self.func, run)?;
                self.expected.borrow_mut().insert(at, expected);
            }
            let expected = self.expected.borrow();
            // A kernel that needs what other blocks do is wrong by itself with only one.
            let Some(Some(expected)) = expected.get(&at) else {
                continue;
            };
            if self.run(mutant, run)?.as_ref() != Some(expected) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What comes out; none where something is wrong (waves that wait for ever, too).
    fn run(&self, func: &Func, run: &Run) -> Result<Option<Outcome>, Failed> {
        let options = SimtOptions {
            seed: run.seed,
            landing: run.landing,
            first_only: true,
            threads: 1,
            ..SimtOptions::default()
        };
        let mut args = self.given.clone();
        let ran = match run.first {
            true => simt::run(&first_block(func), self.target, &mut args, &options),
            false => simt::run(func, self.target, &mut args, &options),
        };
        let clean = ran.is_ok_and(|report| report.is_clean());
        Ok(clean.then(|| bits(&args)))
    }
}

/// The ways to run a function, those first that show most for least.
fn runs(func: &Func) -> Vec<Run> {
    let late = Landing {
        dma: When::Late,
        lds: When::Late,
    };
    let mut landings = landings(func);
    landings.sort_by_key(|l| *l != late);
    let mut runs = Vec::new();
    for (first, seeds) in [(true, 1), (false, SEEDS)] {
        for seed in 0..seeds {
            for &landing in &landings {
                runs.push(Run {
                    first,
                    seed,
                    landing,
                });
            }
        }
    }
    runs
}

fn bits(args: &Args) -> Outcome {
    let names = args.iter().map(|(name, _)| name);
    let tensors = names.filter_map(|name| args.tensor(name));
    tensors
        .map(|t| t.to_f64().iter().map(|v| v.to_bits()).collect())
        .collect()
}

fn first_block(func: &Func) -> Func {
    let mut first = func.clone();
    for kernel in &mut first.kernels {
        for (_, extent) in &mut kernel.grid {
            *extent = Expr::int(1, extent.dtype());
        }
    }
    first
}

fn all_are_found(case: &'static Case, target: Target) -> Result<(), Failed> {
    let subject = Subject::of(case, target)?;
    // Without products of warp groups it is the program of sm_80.
    if target == Target::Sm90a && !has_group_products(&subject.func) {
        return Ok(());
    }
    let (mut alive, mut nth) = (Vec::new(), 0);
    while let Some((mutant, what)) = mutant(&subject.func, target, nth) {
        nth += 1;
        let checked = !hazard::check(&mutant, subject.target).hazards.is_empty();
        let shown = subject.shows(&mutant)?;
        let who = match (checked, shown) {
            (true, true) => continue,
            (false, false) => "nobody reports",
            (false, true) => "the checker misses",
            (true, false) => "the simulator misses",
        };
        let place = subject.sources.locate(what.span);
        alive.push(format!(
            "{who} {:?} #{} of `{}` ({place})",
            what.kind,
            nth - 1,
            what.text
        ));
    }
    if nth == 0 {
        return Err("the loop has nothing derived to change".into());
    }
    if !alive.is_empty() {
        let list = alive.join("\n");
        return Err(format!("{list}\nof {nth} mutants in\n{}", subject.func).into());
    }
    Ok(())
}

/// What was changed.
struct Change {
    text: String,
    span: Span,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Wait,
    Commit,
    Barrier,
    Fence,
    Slot,
}

/// The function with its nth change made.
fn mutant(func: &Func, target: Target, nth: usize) -> Option<(Func, Change)> {
    let mut mutant = func.clone();
    let mut left = nth;
    for kernel in &mut mutant.kernels {
        if let Some(change) = change((func, target), &mut kernel.body, &mut left) {
            return Some((mutant, change));
        }
    }
    None
}

fn change((func, target): (&Func, Target), block: &mut Block, left: &mut usize) -> Option<Change> {
    for at in 0..block.len() {
        let before = block[at].clone();
        let found = if let Some(kind) = changed_whole(&before, target) {
            let here = *left == 0;
            *left = left.saturating_sub(1);
            if here {
                match weaker(&before) {
                    Some(weaker) => block[at] = weaker,
                    None => {
                        block.remove(at);
                    }
                }
            }
            here.then_some(kind)
        } else {
            other_slot(func, &mut block[at], left).then_some(Kind::Slot)
        };
        if let Some(kind) = found {
            return Some(Change {
                text: first_line(func, &before),
                span: before.span,
                kind,
            });
        }
        for child in visit::child_blocks_mut(&mut block[at]) {
            if let Some(change) = change((func, target), child, left) {
                return Some(change);
            }
        }
    }
    None
}

/// Whether the statement as a whole is something derived.
fn changed_whole(stmt: &Stmt, target: Target) -> Option<Kind> {
    match &stmt.kind {
        StmtKind::Device(DeviceOp::Wait { .. }) => Some(Kind::Wait),
        StmtKind::Device(DeviceOp::Commit(_)) => Some(Kind::Commit),
        StmtKind::Device(DeviceOp::Fence(FenceKind::AsyncProxy | FenceKind::Wgmma)) => {
            Some(Kind::Fence)
        }
        StmtKind::Device(DeviceOp::Barrier(BarrierKind::Block | BarrierKind::Bare)) => {
            Some(Kind::Barrier)
        }
        StmtKind::Thread(ThreadOp::SyncWarp) if !target.machine().lockstep => Some(Kind::Barrier),
        _ => None,
    }
}

/// The wait loosened by one; nothing where the statement goes.
fn weaker(stmt: &Stmt) -> Option<Stmt> {
    let StmtKind::Device(DeviceOp::Wait { counter, at_most }) = stmt.kind else {
        return None;
    };
    let at_most = at_most + 1;
    let wait = StmtKind::Device(DeviceOp::Wait { counter, at_most });
    (at_most <= wait_limit(counter)).then(|| Stmt::new(wait, stmt.span))
}

fn first_line(func: &Func, stmt: &Stmt) -> String {
    let text = tilewright::ir::text::print_stmt(func, stmt);
    text.lines().next().unwrap_or_default().trim().to_string()
}

/// Moves the nth slot index of a statement to another version: each in turn.
fn other_slot(func: &Func, stmt: &mut Stmt, left: &mut usize) -> bool {
    let versions = |buffer: Buffer| match func.buffers[buffer].versions {
        n if n > 1 && func.buffers[buffer].scope == Scope::Shared => Some(n),
        _ => None,
    };
    let mut moved = false;
    let mut shift = |buffer: Buffer, slot: &mut Expr| {
        let Some(n) = versions(buffer).filter(|_| !moved) else {
            return;
        };
        let others = n as usize - 1;
        if *left < others {
            moved = true;
            let other = slot.clone() + Expr::int(*left as i128 + 1, slot.dtype());
            *slot = other.floor_mod(Expr::int(n.into(), slot.dtype()));
        } else {
            *left -= others;
        }
    };
    match &mut stmt.kind {
        StmtKind::Micro(m) => {
            for access in std::iter::once(&mut m.dest).chain(&mut m.sources) {
                if let Some(slot) = &mut access.slot {
                    shift(access.region.buffer, slot);
                }
            }
        }
        StmtKind::Store {
            buffer, indices, ..
        } => shift(*buffer, &mut indices[0]),
        _ => {}
    }
    visit::stmt_exprs_mut(stmt, &mut |e| {
        *e = e.rewrite(&mut |node| match node.kind() {
            ExprKind::Load { buffer, indices } if versions(*buffer).is_some() => {
                let mut indices = indices.to_vec();
                shift(*buffer, &mut indices[0]);
                Some(Expr::load(*buffer, indices, node.dtype()))
            }
            _ => None,
        });
    });
    moved
}
