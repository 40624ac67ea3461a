//! Lowering a loaded kernel for a target: warnings are reported, errors end the command, and the
//! passes are shown as the command was asked to.

use tilewright::ir::{Diagnostic, Func, SourceMap, Target};
use tilewright::lowering::{self, Lowered, Refused, Until};

use super::output::{self, Failure};
use super::show::Show;

/// Runs the target's passes as far as asked. A hazard in device IR is an error.
pub fn lower(
    func: &Func,
    target: Target,
    until: Until<'_>,
    sources: &SourceMap,
    show: &mut Show<'_>,
) -> Result<Func, Failure> {
    let lowered = lowering::lower_with(func, target, until, show).and_then(Lowered::checked);
    report(lowered, target, sources, show).map(|lowered| lowered.func)
}

/// The same; what the hazard checker finds is left to the caller.
pub fn lower_unchecked(
    func: &Func,
    target: Target,
    until: Until<'_>,
    sources: &SourceMap,
    show: &mut Show<'_>,
) -> Result<Lowered, Failure> {
    let lowered = lowering::lower_with(func, target, until, show);
    report(lowered, target, sources, show)
}

fn report(
    lowered: Result<Lowered, Refused>,
    target: Target,
    sources: &SourceMap,
    show: &mut Show<'_>,
) -> Result<Lowered, Failure> {
    let (warnings, remarks, times) = match &lowered {
        Ok(lowered) => (&lowered.warnings, &lowered.remarks, &lowered.times),
        Err(refused) => (&refused.warnings, &refused.remarks, &refused.times),
    };
    let warnings: Vec<Diagnostic> = warnings.iter().cloned().collect();
    output::warn(&warnings, sources);
    if let Ok(lowered) = &lowered {
        let said: Vec<&Diagnostic> = warnings.iter().chain(remarks.iter()).collect();
        show.decisions(&lowered.func, target, &said, sources);
    }
    show.explain(remarks, sources);
    let unwritten = show.finish(times.clone()).err();
    let mut errors = match lowered {
        Ok(lowered) if unwritten.is_none() => return Ok(lowered),
        Ok(_) => Vec::new(),
        Err(refused) => refused.errors.into_vec(),
    };
    errors.extend(unwritten.map(|d| *d));
    show.print_timings();
    Err(show.fail(&errors, sources))
}
