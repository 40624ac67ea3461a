//! The targets that kernels are compiled for.

use std::fmt;

/// A GPU architecture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// NVIDIA Ampere.
    Sm80,
    /// NVIDIA Hopper with its architecture-specific instructions.
    Sm90a,
    /// AMD CDNA3 (MI300X).
    Gfx942,
    /// AMD CDNA4 (MI355X).
    Gfx950,
}

impl Target {
    pub const ALL: [Target; 4] = [Target::Sm80, Target::Sm90a, Target::Gfx942, Target::Gfx950];

    pub const fn name(self) -> &'static str {
        match self {
            Target::Sm80 => "sm_80",
            Target::Sm90a => "sm_90a",
            Target::Gfx942 => "gfx942",
            Target::Gfx950 => "gfx950",
        }
    }

    pub fn from_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|t| t.name() == name)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
