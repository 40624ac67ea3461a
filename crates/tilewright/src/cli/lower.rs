//! Lowering a loaded kernel for a target: warnings are reported, errors end the command.

use tilewright::ir::{Func, Level, SourceMap, Target};
use tilewright::lowering::{self, Lowered, Refused, Until};

use super::output::{self, Failure};

/// Runs the target's passes until the function is at the level asked for. A hazard in device IR
/// is an error.
pub fn lower(
    func: &Func,
    target: Target,
    level: Level,
    sources: &SourceMap,
    as_json: bool,
) -> Result<Func, Failure> {
    let lowered = lowering::lower(func, target, Until::Level(level)).and_then(Lowered::checked);
    let (func, warnings) = lowered.map_err(|refused| fail(refused, sources, as_json))?;
    output::warn(&warnings.into_vec(), sources);
    Ok(func)
}

/// Runs the target's passes up to and with the one of this name.
pub fn lower_through(
    func: &Func,
    target: Target,
    last: &str,
    sources: &SourceMap,
    as_json: bool,
) -> Result<Func, Failure> {
    let lowered = lowering::lower(func, target, Until::Pass(last));
    let lowered = lowered.map_err(|refused| fail(refused, sources, as_json))?;
    output::warn(&lowered.warnings.into_vec(), sources);
    Ok(lowered.func)
}

/// Lowers to device IR; what the hazard checker finds is left to the caller.
pub fn lower_unchecked(
    func: &Func,
    target: Target,
    sources: &SourceMap,
    as_json: bool,
) -> Result<Lowered, Failure> {
    let lowered = lowering::lower(func, target, Until::Level(Level::Device));
    let lowered = lowered.map_err(|refused| fail(refused, sources, as_json))?;
    output::warn(
        &lowered.warnings.iter().cloned().collect::<Vec<_>>(),
        sources,
    );
    Ok(lowered)
}

fn fail(refused: Refused, sources: &SourceMap, as_json: bool) -> Failure {
    output::warn(&refused.warnings.into_vec(), sources);
    output::fail(&refused.errors.into_vec(), sources, as_json)
}
