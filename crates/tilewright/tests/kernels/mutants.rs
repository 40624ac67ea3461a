//! Nothing that was derived for a pipelined loop can be left out.
//!
//! Each wait of a pipelined example is loosened by one, each commit and barrier removed, and each
//! slot index moved to the next version, one at a time. The hazard checker and the simulator must
//! each report every one of these mutants. Loosening stands for dropping: a wait for nothing at
//! all orders less than a wait for all but one more. A wait at the limit of its counter cannot be
//! loosened and is dropped instead.
//!
//! The simulator runs the first block of the grid, where copies land late. Where it finds nothing
//! it gets other modes, the whole grid, other orders of warps and the kernel's other cases: a
//! loop that runs once in a small case carries nothing to its next iteration.

use std::cell::RefCell;
use std::collections::BTreeMap;

use libtest_mimic::{Failed, Trial};
use tilewright::ir::{
    BarrierKind, Block, Buffer, DeviceOp, Expr, ExprKind, Func, LoopKind, Scope, SourceMap, Span,
    Stmt, StmtKind, Target, visit,
};
use tilewright::schedule::hazard;
use tilewright::schedule::order::wait_limit;
use tilewright::sim::Args;
use tilewright::sim::simt::{self, Landing, SimtOptions, When};

use super::stages::{is_pipelined, set_stages, too_large};
use super::{TARGETS, arguments, landings, lower, stage};
use crate::oracle::{self, Case};

/// Stages that loops are given, those that fit first.
const STAGES: [u32; 2] = [3, 2];

/// Iterations, beyond the stages, of a loop in which everything is needed: a version is used
/// again, and the iteration that uses it again is followed by another.
const MORE: u64 = 2;

/// Cases of a kernel that are tried before a mutant counts as alive.
const CASES: usize = 3;

/// Orders of warps in which the whole grid is run.
const SEEDS: u64 = 2;

pub fn trials() -> Vec<Trial> {
    let mut kernels: BTreeMap<(&str, &str), Vec<Case>> = BTreeMap::new();
    for case in oracle::all_cases() {
        let cases = kernels.entry((case.file, case.kernel)).or_default();
        cases.push(case);
    }
    let mut trials = Vec::new();
    for ((file, kernel), mut cases) in kernels {
        if !is_pipelined(&cases[0]) {
            continue;
        }
        cases.sort_by_key(|case| {
            let size = case.inputs.iter().map(|i| i.values.len()).sum::<usize>();
            (stages_of(case).is_none(), size)
        });
        cases.truncate(CASES);
        let cases: &'static [Case] = Vec::leak(cases);
        for target in TARGETS {
            let title = format!("mutants {target} {file}:{kernel}");
            trials.push(Trial::test(title, move || all_are_found(cases, target)));
        }
    }
    trials
}

/// The most stages at which the loops of a case are long enough, where all are.
fn stages_of(case: &Case) -> Option<u32> {
    let func = stage(case, &mut SourceMap::new()).ok()?;
    let mut shortest = u64::MAX;
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::For(l) = &stmt.kind
                && let LoopKind::Pipelined(_) = l.kind
                && let Some(trips) = l.axes[0].const_trip_count()
            {
                shortest = shortest.min(trips);
            }
        });
    }
    let enough = |stages: &u32| shortest >= u64::from(*stages) + MORE;
    STAGES.into_iter().find(enough)
}

/// A lowered case with what it gives when nothing is wrong.
struct Subject {
    case: &'static Case,
    target: Target,
    func: Func,
    sources: SourceMap,
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
        let most = stages_of(case).unwrap_or(STAGES[1]);
        for stages in STAGES.into_iter().filter(|s| *s <= most) {
            let mut more = func.clone();
            set_stages(&mut more, stages);
            if too_large(more.clone(), target, &sources).is_none() {
                func = more;
                break;
            }
        }
        let func = lower(func, target, &sources)?;
        let runs = runs(&func);
        Ok(Subject {
            case,
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
            max_reports: 1,
            threads: 1,
            ..SimtOptions::default()
        };
        let (mut args, _) = arguments(&self.func, self.case)?;
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

/// In one case of the kernel at least everything is needed. Where a loop runs fewer times than
/// it has stages some of it is not: nothing is carried from an iteration to one that never comes.
fn all_are_found(cases: &'static [Case], target: Target) -> Result<(), Failed> {
    let mut complaint = String::new();
    let start = std::time::Instant::now(); // DEV
    for case in cases {
        let found = alive(&Subject::of(case, target)?)?;
        { use std::io::Write; let mut f = std::fs::OpenOptions::new().create(true).append(true).open("/tmp/mut/dev.txt").unwrap(); writeln!(f, "=== {target} {} {:.1}s\n{}", case.title(), start.elapsed().as_secs_f64(), found.clone().unwrap_or(format!("fine {}", stages_of(case).unwrap_or(0)))).unwrap(); } // DEV
        match found {
            None => return Ok(()),
            Some(text) => complaint = format!("{}:\n{text}\n{complaint}", case.title()),
        }
    }
    Err(complaint.into())
}

/// The mutants of one case that somebody does not report.
fn alive(subject: &Subject) -> Result<Option<String>, Failed> {
    let mut alive = Vec::new();
    let mut nth = 0;
    while let Some((mutant, what)) = mutant(&subject.func, nth) {
        let checked = !hazard::check(&mutant, subject.target).hazards.is_empty();
        let shown = subject.shows(&mutant)?;
        if !(checked && shown) {
            let who = match (checked, shown) {
                (false, false) => "nobody reports",
                (false, true) => "the checker misses",
                _ => "the simulator misses",
            };
            let place = subject.sources.locate(what.span);
            alive.push(format!("{who} mutant {nth}: {} ({place})", what.text));
        }
        nth += 1;
    }
    if nth == 0 {
        return Err("the loop has nothing derived to change".into());
    }
    let text = format!("{}\nof {nth} in\n{}", alive.join("\n"), subject.func);
    Ok((!alive.is_empty()).then_some(text))
}

/// What was changed.
struct Change {
    text: String,
    span: Span,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Wait,
    Commit,
    Barrier,
    Slot,
}

/// The function with its nth change made.
fn mutant(func: &Func, nth: usize) -> Option<(Func, Change)> {
    let mut mutant = func.clone();
    let mut left = nth;
    for kernel in &mut mutant.kernels {
        if let Some(change) = change(func, &mut kernel.body, &mut left) {
            return Some((mutant, change));
        }
    }
    None
}

fn change(func: &Func, block: &mut Block, left: &mut usize) -> Option<Change> {
    for at in 0..block.len() {
        let before = block[at].clone();
        let named = |kind: Kind| Change {
            text: format!("{kind:?} of `{}`", first_line(func, &before)),
            span: before.span,
        };
        match &mut block[at].kind {
            StmtKind::Device(DeviceOp::Wait { counter, at_most }) => {
                if *left == 0 {
                    if *at_most < wait_limit(*counter) {
                        *at_most += 1;
                    } else {
                        block.remove(at);
                    }
                    return Some(named(Kind::Wait));
                }
                *left -= 1;
            }
            StmtKind::Device(DeviceOp::Commit(_)) => {
                if *left == 0 {
                    block.remove(at);
                    return Some(named(Kind::Commit));
                }
                *left -= 1;
            }
            StmtKind::Device(DeviceOp::Barrier(BarrierKind::Block | BarrierKind::Bare)) => {
                if *left == 0 {
                    block.remove(at);
                    return Some(named(Kind::Barrier));
                }
                *left -= 1;
            }
            _ => {}
        }
        if next_slot(func, &mut block[at], left) {
            return Some(named(Kind::Slot));
        }
        for child in visit::child_blocks_mut(&mut block[at]) {
            if let Some(change) = change(func, child, left) {
                return Some(change);
            }
        }
    }
    None
}

fn first_line(func: &Func, stmt: &Stmt) -> String {
    let text = tilewright::ir::text::print_stmt(func, stmt);
    text.lines().next().unwrap_or_default().trim().to_string()
}

/// Moves the nth slot index of a statement to the next version.
fn next_slot(func: &Func, stmt: &mut Stmt, left: &mut usize) -> bool {
    let versions = |buffer: Buffer| match func.buffers[buffer].versions {
        n if n > 1 && func.buffers[buffer].scope == Scope::Shared => Some(n),
        _ => None,
    };
    let mut moved = false;
    let mut shift = |buffer: Buffer, slot: &mut Expr| {
        let Some(n) = versions(buffer).filter(|_| !moved) else {
            return;
        };
        if *left == 0 {
            moved = true;
            let next = slot.clone() + Expr::int(1, slot.dtype());
            *slot = next.floor_mod(Expr::int(n.into(), slot.dtype()));
        } else {
            *left -= 1;
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
