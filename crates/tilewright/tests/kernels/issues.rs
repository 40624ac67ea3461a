//! The kernels of `tilelang_issues/`: right in the reference evaluator and, for every target and
//! in several orders of warps, in the simulator; or refused where no right program exists.

use std::collections::BTreeSet;
use std::fs;

use libtest_mimic::{Failed, Trial};
use tilewright::ir::{SourceMap, Target};
use tilewright::passes::driver::{self, Options};

use super::{TARGETS, reference, root, simulated, stage};
use crate::oracle::Case;
use crate::oracle::tilelang_issues::{FOLDER, REFUSED, cases};

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![Trial::test(
        "every issue has a case",
        every_issue_has_a_case,
    )];
    for case in cases() {
        trials.push(Trial::test(case.title(), move || reference(&case)));
    }
    for target in TARGETS {
        for case in cases() {
            let title = format!("{target} {}", case.title());
            trials.push(Trial::test(title, move || simulated(&case, target)));
        }
        for (file, code) in REFUSED {
            let title = format!("{target} {file}:kernel is refused");
            trials.push(Trial::test(title, move || refused(file, code, target)));
        }
    }
    trials
}

fn every_issue_has_a_case() -> Result<(), Failed> {
    let mut present = BTreeSet::new();
    for entry in fs::read_dir(root().join(FOLDER))? {
        present.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    let checked: BTreeSet<String> = cases().iter().map(|c| c.file.to_string()).collect();
    if present == checked {
        return Ok(());
    }
    let differ: Vec<_> = present.symmetric_difference(&checked).collect();
    Err(format!("kernels without a case, or cases without a kernel: {differ:?}").into())
}

/// The kernel is refused with this error, at a place in its file.
fn refused(file: &'static str, code: &str, target: Target) -> Result<(), Failed> {
    let case = Case::new(file, "kernel").in_folder(FOLDER);
    let mut sources = SourceMap::new();
    let mut func = stage(&case, &mut sources)?;
    let diags = match driver::run(&mut func, target, &Options::default()) {
        Ok(report) => report.said,
        Err(failed) => failed.into_diagnostics(),
    };
    let found = diags.iter().find(|d| d.code.0 == code);
    let Some(found) = found else {
        return Err(format!("no {code} among {} diagnostics", diags.iter().count()).into());
    };
    let source = fs::read_to_string(root().join(FOLDER).join(file))?;
    let span = found.primary.span;
    let text = &source[span.start as usize..span.end as usize];
    if text.contains("shared[") {
        Ok(())
    } else {
        Err(format!("it points at {text:?}, not at the exchange").into())
    }
}
