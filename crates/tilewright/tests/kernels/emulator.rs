//! The cases as machine code of AMD targets, in the emulator.
//!
//! What clang makes of a case runs in every mode of landing; nothing may be wrong with it and the
//! result is the formula's. Compiling takes longer than running, so that a machine that runs the
//! tests takes every eighth case of each target, others on the one than on the other;
//! `TILEWRIGHT_TEST_GFX9=all` takes all of them.

use libtest_mimic::{Failed, Trial};
use tilewright::emulate::{Emulator, LANDINGS, Options};
use tilewright::ir::{SourceMap, Target};

use super::{arguments, as_multiplied, compare, lower, render, stage};
use crate::oracle::{self, Case};

const SAMPLE: usize = 8;

pub fn trials() -> Vec<Trial> {
    let all = std::env::var_os("TILEWRIGHT_TEST_GFX9").is_some();
    let mut trials = Vec::new();
    for (first, target) in [(0, Target::Gfx942), (4, Target::Gfx950)] {
        let cases = oracle::all_cases().iter().filter(|c| c.is_for(target));
        for (number, case) in cases.enumerate() {
            if all || number % SAMPLE == first {
                let title = format!("emulated {target} {}", case.title());
                trials.push(Trial::test(title, move || emulated(case, target)));
            }
        }
    }
    trials
}

fn emulated(case: &Case, target: Target) -> Result<(), Failed> {
    let mut sources = SourceMap::new();
    let func = lower(stage(case, &mut sources)?, target, &sources)?;
    let emulator = Emulator::new(&func, target, &sources)
        .map_err(|e| render(e.into_diagnostics().iter(), &sources))?;
    let (given, inputs) = arguments(&func, case)?;
    let inputs = as_multiplied(case, target, inputs);
    for (name, landing) in LANDINGS {
        let mut args = given.clone();
        let options = Options {
            landing,
            seed: 1,
            threads: 1,
            ..Options::default()
        };
        let found = emulator
            .run(&mut args, &options)
            .map_err(|e| render(e.into_diagnostics().iter(), &sources))?
            .findings;
        if !found.is_empty() {
            return Err(format!("landing {name}\n{}", render(found.iter(), &sources)).into());
        }
        compare(case, &args, &inputs).map_err(|e| {
            let wrong = e.message().unwrap_or_default();
            Failed::from(format!("landing {name}: {wrong}"))
        })?;
    }
    Ok(())
}
