//! Lowering: the passes of a target in order, each checked by the verifier, and at device level
//! the hazard checker over the result.
//!
//! Every way to a compiled kernel goes through here, so none of them leaves a check out. The
//! passes are run by the driver of `passes`.

use std::time::{Duration, Instant};

use tilewright_ir::{Diagnostic, Diagnostics, Func, Level, Target};
use tilewright_passes::driver::{self, Hook, Step, Timing};
use tilewright_schedule::hazard::{self, HazardReport};

pub use tilewright_passes::driver::Until;

/// A lowered function and what was said on the way.
#[derive(Clone, Debug)]
pub struct Lowered {
    pub func: Func,
    /// What the passes said; no errors.
    pub warnings: Diagnostics,
    /// What they decided and why.
    pub remarks: Diagnostics,
    /// What the hazard checker says of device IR.
    pub hazards: Option<HazardReport>,
    pub times: Times,
}

/// Why a function could not be lowered.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What passes said before the one that refused it.
    pub warnings: Diagnostics,
    /// What they decided and why.
    pub remarks: Diagnostics,
    pub errors: Diagnostics,
    pub times: Times,
}

/// How long what was done took.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// One row for each pass that was run.
    pub passes: Vec<Timing>,
    /// The hazard checker, where it was asked.
    pub hazards: Option<Duration>,
}

/// Runs the target's passes. What the hazard checker finds is part of the result, for callers
/// that report it beside other findings; see [`Lowered::checked`].
pub fn lower(func: &Func, target: Target, until: Until<'_>) -> Result<Lowered, Refused> {
    lower_with(func, target, until, &mut |_: Step, _: &Func| {})
}

/// The same, with a hook that sees each pass.
pub fn lower_with(
    func: &Func,
    target: Target,
    until: Until<'_>,
    hook: &mut dyn Hook,
) -> Result<Lowered, Refused> {
    let mut func = func.clone();
    let lowered = func.level == Level::Device && matches!(until, Until::Level(_));
    let options = driver::Options {
        until,
        // Device IR has all passes behind it.
        passes: lowered.then(Vec::new),
        ..driver::Options::default()
    };
    let ran = driver::run_with(&mut func, target, &options, hook);
    let report = ran.map_err(|failed| Refused {
        warnings: failed.report.said,
        remarks: failed.report.remarks,
        errors: failed.errors,
        times: Times {
            passes: failed.report.timings,
            hazards: None,
        },
    })?;
    let mut times = Times {
        passes: report.timings,
        hazards: None,
    };
    let hazards = (func.level == Level::Device).then(|| {
        let start = Instant::now();
        // What a pass has asked of this very function is not asked again.
        let found = report.hazards;
        let found = found.unwrap_or_else(|| hazard::check(&func, target));
        times.hazards = Some(start.elapsed());
        found
    });
    Ok(Lowered {
        func,
        warnings: report.said,
        remarks: report.remarks,
        hazards,
        times,
    })
}

impl Lowered {
    /// The function, unless it has a hazard. What the checker could not decide is no error.
    pub fn checked(self) -> Result<Lowered, Refused> {
        let found = self.hazards.iter().flat_map(|report| &report.hazards);
        let found: Vec<Diagnostic> = found
            .map(|hazard| {
                hazard
                    .to_diagnostic()
                    .note("the kernel as lowered; `tilewright verify` says more")
            })
            .collect();
        if found.is_empty() {
            return Ok(self);
        }
        let mut errors = Diagnostics::new();
        errors.extend(found);
        Err(Refused {
            warnings: self.warnings,
            remarks: self.remarks,
            errors,
            times: self.times,
        })
    }
}
