//! Every example with a pipelined loop, with one to four stages.
//!
//! The number of stages is set in the loop itself, so kernels whose factory has no parameter for
//! it are swept too. A kernel's two smallest cases stand for all: what the stages change does not
//! depend on the shape otherwise.

use std::collections::BTreeMap;

use libtest_mimic::{Failed, Trial};
use tilewright::ir::{Block, Func, LoopKind, SourceMap, StmtKind, Target, visit};
use tilewright::passes::driver::{self, Options};
use tilewright::schedule::hazard;

use super::landings::landings;
use super::{TARGETS, lower, render, simulate, stage};
use crate::oracle::{self, Case};

/// Most stages that are tried.
const STAGES: u32 = 4;

pub fn trials() -> Vec<Trial> {
    let mut kernels: BTreeMap<(&str, &str), Vec<&Case>> = BTreeMap::new();
    for case in oracle::all_cases() {
        let cases = kernels.entry((case.file, case.kernel)).or_default();
        cases.push(case);
    }
    let mut trials = Vec::new();
    for ((file, kernel), mut cases) in kernels {
        if !is_pipelined(cases[0]) {
            continue;
        }
        cases.sort_by_key(|case| case.inputs.iter().map(|i| i.values.len()).sum::<usize>());
        cases.truncate(2);
        let cases: &'static [&Case] = Vec::leak(cases);
        for target in TARGETS {
            for stages in 1..=STAGES {
                let title = format!("stages {stages} {target} {file}:{kernel}");
                // Every order of warps is tried with the stages as written; here one for each.
                let check = move || {
                    let orders = u64::from(stages) * 2..;
                    let mut all = cases.iter().zip(orders);
                    all.try_for_each(|(case, order)| staged(case, target, stages, order))
                };
                trials.push(Trial::test(title, check));
            }
        }
    }
    trials
}

pub fn is_pipelined(case: &Case) -> bool {
    let mut sources = SourceMap::new();
    stage(case, &mut sources).is_ok_and(|mut func| set_stages(&mut func, 1) > 0)
}

/// The kernel with this many stages is proved free of hazards and gives the same; or does not
/// fit, and that is said.
fn staged(case: &Case, target: Target, stages: u32, order: u64) -> Result<(), Failed> {
    let mut sources = SourceMap::new();
    let mut func = stage(case, &mut sources)?;
    set_stages(&mut func, stages);
    let func = match lower(func.clone(), target, &sources) {
        Ok(lowered) => lowered,
        // One stage always fits: then the loop is no larger than it was written.
        Err(_) if stages > 1 && too_large(func, target, &sources).is_some() => return Ok(()),
        Err(refused) => return Err(refused),
    };
    let checked = hazard::check(&func, target);
    if !checked.is_clean() {
        return Err(render(checked.diagnostics().iter(), &sources).into());
    }
    let runs = landings(&func).into_iter().map(|landing| (landing, order));
    simulate(&func, case, target, &sources, runs)
}

/// What is said where the stages do not fit the target's shared memory.
pub fn too_large(mut func: Func, target: Target, sources: &SourceMap) -> Option<String> {
    let failed = driver::run(&mut func, target, &Options::default()).err()?;
    let diags = failed.into_diagnostics();
    let limit = diags.iter().any(|d| d.code.0 == "shared-memory-limit");
    limit.then(|| render(diags.iter(), sources))
}

/// Sets the stages of every pipelined loop. Returns how many there are.
pub fn set_stages(func: &mut Func, stages: u32) -> usize {
    let kernels = func.kernels.iter_mut();
    kernels.map(|k| set_in(&mut k.body, stages)).sum()
}

fn set_in(block: &mut Block, stages: u32) -> usize {
    let mut found = 0;
    for stmt in block {
        if let StmtKind::For(l) = &mut stmt.kind
            && let LoopKind::Pipelined(spec) = &mut l.kind
        {
            spec.stages = stages;
            found += 1;
        }
        for child in visit::child_blocks_mut(stmt) {
            found += set_in(child, stages);
        }
    }
    found
}
