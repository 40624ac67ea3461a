//! Lowering a loaded kernel for a target, with every pass checked by the verifier.

use tilewright::ir::{Diagnostics, Func, Level, SourceMap, Target, verify};
use tilewright::passes;

use super::output::{self, Failure};

/// Runs the target's passes until the function is at the level asked for. Warnings are
/// reported, errors end it.
pub fn lower(
    mut func: Func,
    target: Target,
    level: Level,
    sources: &SourceMap,
    as_json: bool,
) -> Result<Func, Failure> {
    for pass in passes::pipeline(target) {
        let before = func.clone();
        let mut diags = Diagnostics::new();
        (pass.run)(&mut func, target, &mut diags);
        if func.level > level {
            return Ok(before);
        }
        let failed = diags.has_errors();
        let diags = diags.into_vec();
        if failed {
            return Err(output::fail(&diags, sources, as_json));
        }
        output::warn(&diags, sources);
        verify::verify(&func).map_err(|d| output::fail(&d, sources, as_json))?;
    }
    Ok(func)
}
