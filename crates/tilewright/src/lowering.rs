//! Lowering: the passes of a target in order, each checked by the verifier, and at device level
//! the hazard checker over the result.
//!
//! Every way to a compiled kernel goes through here, so none of them leaves a check out.

use tilewright_ir::{Diagnostic, Diagnostics, Func, Level, Target, verify};
use tilewright_schedule::hazard::{self, HazardReport};

/// How far a function is lowered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until<'a> {
    /// To the last state of this level.
    Level(Level),
    /// Up to and with the pass of this name.
    Pass(&'a str),
}

/// A lowered function and what was said on the way.
#[derive(Clone, Debug)]
pub struct Lowered {
    pub func: Func,
    /// What the passes said; no errors.
    pub warnings: Diagnostics,
    /// What the hazard checker says of device IR.
    pub hazards: Option<HazardReport>,
}

/// Why a function could not be lowered.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What passes said before the one that refused it.
    pub warnings: Diagnostics,
    pub errors: Diagnostics,
}

/// Runs the target's passes. What the hazard checker finds is part of the result, for callers
/// that report it beside other findings; see [`Lowered::checked`].
pub fn lower(func: &Func, target: Target, until: Until<'_>) -> Result<Lowered, Refused> {
    let mut func = func.clone();
    let mut warnings = Diagnostics::new();
    for pass in tilewright_passes::pipeline(target) {
        let before = match until {
            Until::Level(level) if level < Level::Device => Some(func.clone()),
            _ => None,
        };
        let mut errors = Diagnostics::new();
        (pass.run)(&mut func, target, &mut errors);
        if let (Some(before), Until::Level(level)) = (before, until)
            && func.level > level
        {
            func = before;
            break;
        }
        if errors.has_errors() {
            return Err(Refused { warnings, errors });
        }
        warnings.extend(errors.into_vec());
        if let Err(list) = verify::verify(&func) {
            let mut errors = Diagnostics::new();
            errors.extend(list);
            return Err(Refused { warnings, errors });
        }
        if until == Until::Pass(pass.name) {
            break;
        }
    }
    let device = func.level == Level::Device;
    let hazards = device.then(|| hazard::check(&func, target));
    Ok(Lowered {
        func,
        warnings,
        hazards,
    })
}

impl Lowered {
    /// The function, unless it has a hazard. What the checker could not decide is no error.
    pub fn checked(self) -> Result<(Func, Diagnostics), Refused> {
        let found = self.hazards.iter().flat_map(|report| &report.hazards);
        let found: Vec<Diagnostic> = found
            .map(|hazard| {
                hazard
                    .to_diagnostic()
                    .note("the kernel as lowered; `tilewright verify` says more")
            })
            .collect();
        if found.is_empty() {
            return Ok((self.func, self.warnings));
        }
        let mut errors = Diagnostics::new();
        errors.extend(found);
        Err(Refused {
            warnings: self.warnings,
            errors,
        })
    }
}
