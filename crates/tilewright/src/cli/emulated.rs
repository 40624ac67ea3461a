//! A kernel's compiled code in the emulator, for `verify`.

use serde_json::{Value, json};
use tilewright::emulate::{Emulator, LANDINGS, Options};
use tilewright::ir::{Diagnostic, Func, Target};
use tilewright::jit::Error;
use tilewright::sim;
use tilewright::verdict::{Compared, summation, verdict_within};

use super::findings::Findings;
use super::progress::Progress;

/// What was emulated.
pub enum Emulated {
    /// All blocks, in so many modes.
    All { modes: usize },
    /// Too many blocks to wait for.
    LeftOut,
    /// It would say again what is wrong already.
    Skipped,
}

/// Runs compiled code in every mode on the given tensors, and compares it with the reference where
/// there is one.
pub fn emulate(
    emulator: &Emulator,
    (func, target): (&Func, Target),
    given: &sim::Args,
    expected: Option<&sim::Args>,
    progress: &Progress,
    findings: &mut Findings,
) -> Result<Emulated, Vec<Diagnostic>> {
    for (name, landing) in LANDINGS {
        progress.doing(&format!(
            "running the compiled code, operations land {name}"
        ));
        let options = Options {
            landing,
            ..Options::default()
        };
        let mut found = given
            .try_clone(func)
            .map_err(|e| e.diagnostics.into_vec())?;
        let ran = emulator
            .run(&mut found, &options)
            .map_err(Error::into_diagnostics)?;
        let clean = ran.findings.is_empty();
        findings.extend(ran.findings);
        if let Some(expected) = expected
            && clean
        {
            let sums = summation(func, target);
            let judged = verdict_within(func, &found, expected, Compared::Expected, sums);
            findings.extend(judged.diagnostic(func));
        }
    }
    Ok(Emulated::All {
        modes: LANDINGS.len(),
    })
}

impl Emulated {
    pub fn to_text(&self) -> String {
        match self {
            Self::All { modes } => {
                format!("emulated the compiled code of all blocks in {modes} modes\n")
            }
            Self::LeftOut => {
                "the compiled code was not emulated: many blocks (`--all` does it)\n".to_owned()
            }
            Self::Skipped => "the compiled code was not emulated\n".to_owned(),
        }
    }

    pub fn to_json(&self) -> Value {
        match self {
            Self::All { modes } => json!({ "modes": modes }),
            Self::LeftOut | Self::Skipped => Value::Null,
        }
    }
}
