//! The table at the end of a run.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::run::Outcome;

/// Failures by kind, then the counts.
pub fn table(outcome: &Outcome) -> String {
    let mut kinds: BTreeMap<&str, Vec<(u64, &str)>> = BTreeMap::new();
    for (seed, failure) in &outcome.failures {
        let list = kinds.entry(&failure.kind).or_default();
        list.push((*seed, failure.target.unwrap_or("")));
    }
    let mut text = String::new();
    let mut rows: Vec<_> = kinds.into_iter().collect();
    rows.sort_by_key(|(_, list)| std::cmp::Reverse(list.len()));
    for (kind, mut list) in rows {
        list.sort_unstable();
        let mut targets: Vec<&str> = list.iter().map(|(_, t)| *t).collect();
        targets.sort_unstable();
        targets.dedup();
        let seeds: Vec<String> = list.iter().take(6).map(|(s, _)| s.to_string()).collect();
        let _ = writeln!(
            text,
            "{:6}  {kind:40} {:28} seeds {}",
            list.len(),
            targets.join(" "),
            seeds.join(" ")
        );
    }
    let total = outcome.total;
    let _ = writeln!(
        text,
        "{} times not proved free of hazards, {} times without an instruction, {} compiled, \
         {} emulated",
        total.unproved, total.lacking, total.compiled, total.emulated
    );
    let failed = outcome.failures.len();
    let _ = writeln!(text, "{} passed, {failed} failed", outcome.passed);
    text
}
