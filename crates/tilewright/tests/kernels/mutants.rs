//! Nothing that was derived for a pipelined loop can be left out.
//!
//! Each wait of a pipelined example is loosened by one, each commit and barrier removed, and each
//! slot index moved to the next version, one at a time. The hazard checker and the simulator must
//! each report every one of these mutants. Loosening stands for dropping: a wait for nothing at
//! all orders less than a wait for all but one more. A wait at the limit of its counter cannot be
//! loosened and is dropped instead.
//!
//! The simulator runs the first block of the grid, where copies land late. Where it finds nothing
//! it gets the whole grid, other orders of warps, other modes and the kernel's other cases: a
//! loop that runs once in a small case carries nothing to its next iteration.

use std::collections::BTreeMap;

use libtest_mimic::{Failed, Trial};
use tilewright::ir::{
    BarrierKind, Block, Buffer, DeviceOp, Expr, ExprKind, Func, Scope, SourceMap, Span, Stmt,
    StmtKind, Target, visit,
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

/// Cases of a kernel that are tried before a mutant counts as alive.
const CASES: usize = 3;

/// Some kernels have mutants that live, for reasons not looked into yet, so these trials are
/// asked for by name: `cargo test --release -p tilewright --test examples -- --ignored mutants`.
const ASKED_FOR: bool = true;

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
        cases.sort_by_key(|case| case.inputs.iter().map(|i| i.values.len()).sum::<usize>());
        cases.truncate(CASES);
        let cases: &'static [Case] = Vec::leak(cases);
        for target in TARGETS {
            let title = format!("mutants {target} {file}:{kernel}");
            let trial = Trial::test(title, move || all_are_found(cases, target));
            trials.push(trial.with_ignored_flag(ASKED_FOR));
        }
    }
    trials
}

/// A lowered case with what it gives when nothing is wrong.
struct Subject {
    case: &'static Case,
    func: Func,
    sources: SourceMap,
}

impl Subject {
    fn of(case: &'static Case, target: Target) -> Result<Subject, Failed> {
        let mut sources = SourceMap::new();
        let staged = stage(case, &mut sources)?;
        for stages in STAGES {
            let mut func = staged.clone();
            set_stages(&mut func, stages);
            if too_large(func.clone(), target, &sources).is_none() {
                let func = lower(func, target, &sources)?;
                return Ok(Subject {
                    case,
                    func,
                    sources,
                });
            }
        }
        let func = lower(staged, target, &sources)?;
        Ok(Subject {
            case,
            func,
            sources,
        })
    }

    /// Whether the simulator reports a mutant: a finding, another result, or no end.
    fn shows(&self, mutant: &Func, target: Target) -> Result<bool, Failed> {
        let late = Landing {
            dma: When::Late,
            lds: When::Late,
        };
        let first = first_block(&self.func);
        // A kernel that needs what other blocks do is wrong by itself with only one.
        if self.is_clean(&first, target, late)?
            && self.differs(&first, &first_block(mutant), target, 0, late)?
        {
            return Ok(true);
        }
        for seed in 0..2 {
            for landing in landings(&self.func) {
                if self.differs(&self.func, mutant, target, seed, landing)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn is_clean(&self, func: &Func, target: Target, landing: Landing) -> Result<bool, Failed> {
        let options = SimtOptions {
            landing,
            max_reports: 1,
            threads: 1,
            ..SimtOptions::default()
        };
        let (mut args, _) = arguments(&self.func, self.case)?;
        let ran = simt::run(func, target, &mut args, &options);
        Ok(ran.is_ok_and(|report| report.is_clean()))
    }

    fn differs(
        &self,
        func: &Func,
        mutant: &Func,
        target: Target,
        seed: u64,
        landing: Landing,
    ) -> Result<bool, Failed> {
        let options = SimtOptions {
            seed,
            landing,
            max_reports: 1,
            threads: 1,
            ..SimtOptions::default()
        };
        let (mut found, _) = arguments(&self.func, self.case)?;
        // An error at run time (waves that wait for ever) is a report too.
        let Ok(report) = simt::run(mutant, target, &mut found, &options) else {
            return Ok(true);
        };
        if !report.is_clean() {
            return Ok(true);
        }
        let (mut expected, _) = arguments(&self.func, self.case)?;
        simt::run(func, target, &mut expected, &options).map_err(|e| e.to_string())?;
        Ok(bits(&found) != bits(&expected))
    }
}

/// All tensors, to the last bit.
fn bits(args: &Args) -> Vec<Vec<u64>> {
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
    for case in cases {
        match alive(&Subject::of(case, target)?, target)? {
            None => return Ok(()),
            Some(text) => complaint = format!("{}:\n{text}\n{complaint}", case.title()),
        }
    }
    Err(complaint.into())
}

/// The mutants of one case that somebody does not report.
fn alive(subject: &Subject, target: Target) -> Result<Option<String>, Failed> {
    let mut alive = Vec::new();
    let mut nth = 0;
    while let Some((mutant, what)) = mutant(&subject.func, nth) {
        let checked = !hazard::check(&mutant, target).hazards.is_empty();
        let shown = subject.shows(&mutant, target)?;
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
