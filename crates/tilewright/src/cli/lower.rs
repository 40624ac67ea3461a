//! Lowering a loaded kernel for a target, with every pass checked by the verifier.

use tilewright::ir::{Diagnostics, Func, Level, SourceMap, Target, verify};
use tilewright::passes::{self, PassInfo};

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
        let diags = run(pass, &mut func, target);
        if func.level > level {
            return Ok(before);
        }
        check(&func, diags, sources, as_json)?;
    }
    Ok(func)
}

/// Runs the target's passes up to and with the one of this name.
pub fn lower_through(
    mut func: Func,
    target: Target,
    last: &str,
    sources: &SourceMap,
    as_json: bool,
) -> Result<Func, Failure> {
    for pass in passes::pipeline(target) {
        let diags = run(pass, &mut func, target);
        check(&func, diags, sources, as_json)?;
        if pass.name == last {
            break;
        }
    }
    Ok(func)
}

fn run(pass: &PassInfo, func: &mut Func, target: Target) -> Diagnostics {
    let mut diags = Diagnostics::new();
    (pass.run)(func, target, &mut diags);
    diags
}

/// Reports what a pass said, and what the verifier says of its result.
fn check(
    func: &Func,
    diags: Diagnostics,
    sources: &SourceMap,
    as_json: bool,
) -> Result<(), Failure> {
    let failed = diags.has_errors();
    let diags = diags.into_vec();
    if failed {
        return Err(output::fail(&diags, sources, as_json));
    }
    output::warn(&diags, sources);
    verify::verify(func).map_err(|d| output::fail(&d, sources, as_json))
}
