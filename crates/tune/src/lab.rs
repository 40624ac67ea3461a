//! What the tuner asks of who compiles, checks and times configurations.

/// Compiles, checks and times configurations, which are named by their place in a list. An error
/// is the reason that the report gives for the configuration.
pub trait Lab: Sync {
    /// A compiled configuration.
    type Built: Send + Sync;
    /// What it computes.
    type Answer;

    /// Compiles one. Asked from several threads at once.
    fn compile(&self, at: usize) -> Result<Self::Built, String>;

    /// Runs one on the inputs that all get. Without an answer it was compared with what is right
    /// already.
    fn answer(&self, at: usize, built: &Self::Built) -> Result<Option<Self::Answer>, String>;

    /// Says how two answers differ where they do.
    fn agree(&self, answer: &Self::Answer, other: &Self::Answer) -> Result<(), String>;

    /// Compares the answer of one configuration with what is right.
    fn verify(&self, at: usize, answer: &Self::Answer) -> Result<(), String>;

    /// Whether `verify` knows what is right for all, rather than what each was meant to compute.
    /// Without that, as many that say one thing as say another are a question that the tuner
    /// cannot decide.
    fn knows_what_is_right(&self) -> bool;

    /// Times one run of each of these, in this order, from the same state of the machine.
    fn round(&self, built: &[&Self::Built]) -> Vec<Result<f64, String>>;

    /// What `round` counts in.
    fn unit(&self) -> Unit;
}

/// What times are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Measured seconds, which vary from run to run.
    Seconds,
    /// Cycles of a model, the same each time.
    Cycles,
}

impl Unit {
    /// Whether one run says all.
    pub fn is_exact(self) -> bool {
        self == Unit::Cycles
    }

    /// A time as people read it.
    pub fn show(self, time: f64) -> String {
        match self {
            Unit::Seconds if time < 1e-3 => format!("{:.2} us", time * 1e6),
            Unit::Seconds => format!("{:.4} ms", time * 1e3),
            Unit::Cycles => format!("{time:.0} cycles"),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "seconds",
            Unit::Cycles => "cycles",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Unit> {
        [Unit::Seconds, Unit::Cycles]
            .into_iter()
            .find(|unit| unit.name() == name)
    }
}
