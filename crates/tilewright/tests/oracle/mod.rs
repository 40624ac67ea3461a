//! Independent mathematics for the example kernels.
//!
//! Each family module holds plain f64 functions written from the formula in the example's
//! docstring, not from its kernel, and the cases that use them. A function returns its result
//! together with how far a correct kernel may be from it: the slack is carried along with the
//! terms (sums added in f32 in any order, intermediate tiles stored in 16 bits), so a tolerance
//! follows from the dtypes and the data instead of being tuned until a test passes.

pub mod attention;
pub mod elementwise;
pub mod gemm;
pub mod gemv;
pub mod rowwise;
pub mod scan;
pub mod sparse;
pub mod tilelang_issues;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tilewright::ir::Target;

/// Half the distance between neighbours at 1: the relative error of one rounding to a dtype.
pub const F32: f64 = 1.0 / 16_777_216.0;
pub const F16: f64 = 1.0 / 2048.0;
pub const BF16: f64 = 1.0 / 256.0;
pub const E4M3: f64 = 1.0 / 16.0;

/// Nothing is rounded: the kernel moves, compares or counts.
pub const EXACT: f64 = 0.0;

/// What evaluating `exp` or `exp2` in f32 may lose, relative to the result. The argument is rounded
/// to f32 once or twice before the call; at a magnitude of up to 32 that alone costs
/// `2 * 32 * F32`, and the function itself a few units in the last place.
pub const EXP: f64 = 80.0 * F32;

/// What must come out for these inputs.
type Oracle = Box<dyn Fn(&Inputs) -> Vec<Output> + Send + Sync>;

/// One example with one set of parameters, and what must come out.
pub struct Case {
    /// Where the file is, from the root of the repository.
    pub folder: &'static str,
    pub file: &'static str,
    /// The factory or eager function in it.
    pub kernel: &'static str,
    /// Whether only machines with a bulk copy engine can do it.
    bulk_copies: bool,
    /// Parameters as `--set` takes them.
    pub set: Vec<(&'static str, String)>,
    /// The inputs, in the order of the kernel's parameters.
    pub inputs: Vec<Input>,
    oracle: Oracle,
    /// What it has said, by inputs: a case is run for every target, in many orders.
    said: Mutex<Vec<(Inputs, Arc<Vec<Output>>)>>,
}

/// An input tensor, or with an empty shape a scalar. Values are rounded to the parameter's dtype on
/// the way into the kernel, and the oracle sees the rounded ones.
#[derive(Debug, Clone)]
pub struct Input {
    pub name: &'static str,
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

/// How an input is filled. The numbers are the same in every run.
pub enum Fill {
    /// Evenly distributed between two bounds.
    Uniform(f64, f64),
    /// Whole numbers between two bounds, both included.
    Integers(i64, i64),
    Given(Vec<f64>),
}

/// The inputs of a case after rounding, by name.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Inputs(pub BTreeMap<String, Vec<f64>>);

impl Inputs {
    pub fn get(&self, name: &str) -> &[f64] {
        match self.0.get(name) {
            Some(values) => values,
            None => panic!("the case has no input named {name}"),
        }
    }
}

/// What one output must hold.
#[derive(Debug)]
pub struct Output {
    pub name: &'static str,
    pub values: Vec<f64>,
    /// How far each element may be off before it is rounded to the output's dtype.
    pub slack: Vec<f64>,
    /// The relative error of that last rounding.
    pub rounding: f64,
}

impl Output {
    pub fn new(name: &'static str, elements: Vec<Approx>, rounding: f64) -> Self {
        Output {
            name,
            values: elements.iter().map(|e| e.value).collect(),
            slack: elements.iter().map(|e| e.slack).collect(),
            rounding,
        }
    }

    pub fn exact(name: &'static str, values: Vec<f64>) -> Self {
        let slack = vec![0.0; values.len()];
        Output {
            name,
            values,
            slack,
            rounding: EXACT,
        }
    }

    /// Says where `got` differs most, or nothing when every element is within its bound, with so many
    /// times the slack.
    pub fn mismatch(&self, got: &[f64], by: f64) -> Option<String> {
        if got.len() != self.values.len() {
            return Some(format!(
                "{} has {} elements, expected {}",
                self.name,
                got.len(),
                self.values.len()
            ));
        }
        let mut worst: Option<(usize, f64)> = None;
        let mut count = 0;
        for (i, (&got, &want)) in got.iter().zip(&self.values).enumerate() {
            let excess = excess(got, want, by * self.slack[i], self.rounding);
            if excess > 0.0 {
                count += 1;
                if worst.is_none_or(|(_, most)| excess > most) {
                    worst = Some((i, excess));
                }
            }
        }
        let (i, _) = worst?;
        Some(format!(
            "{}: {count} of {} elements are off; the worst is element {i}: got {}, expected {} within {:e}",
            self.name,
            got.len(),
            got[i],
            self.values[i],
            bound(self.values[i], by * self.slack[i], self.rounding)
        ))
    }
}

/// How far from `want` a right element may be. The slack moves the value before it is rounded, so the
/// rounding acts on both.
fn bound(want: f64, slack: f64, rounding: f64) -> f64 {
    Approx { value: want, slack }.rounded(rounding).slack
}

/// By how much an element misses its bound; infinite when one side is not a number and the other is.
fn excess(got: f64, want: f64, slack: f64, rounding: f64) -> f64 {
    if got == want || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    let excess = (got - want).abs() - bound(want, slack, rounding);
    if excess.is_nan() {
        f64::INFINITY
    } else {
        excess
    }
}

/// A value and how far a correct computation may be from it.
#[derive(Debug, Default, Clone, Copy)]
pub struct Approx {
    pub value: f64,
    pub slack: f64,
}

impl Approx {
    pub fn exact(value: f64) -> Self {
        Approx { value, slack: 0.0 }
    }

    /// A value computed with this relative error.
    pub fn relative(value: f64, error: f64) -> Self {
        Approx {
            value,
            slack: value.abs() * error,
        }
    }

    /// Rounded once more, on its way through a narrower buffer. The smallest numbers of f16 are 2^-24
    /// apart, which puts a floor under its error; the other types reach far below all data here.
    pub fn rounded(self, rounding: f64) -> Self {
        let floor = if rounding == F16 {
            1.0 / 33_554_432.0
        } else {
            0.0
        };
        Approx {
            value: self.value,
            slack: self.slack + rounding * (self.value.abs() + self.slack) + floor,
        }
    }

    /// The product; second-order terms are kept, since a slack may be large next to a value near zero.
    pub fn times(self, other: Approx) -> Self {
        Approx {
            value: self.value * other.value,
            slack: self.value.abs() * other.slack
                + self.slack * other.value.abs()
                + self.slack * other.slack,
        }
    }
}

/// A sum, with what adding in f32 in an unknown order may cost.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sum {
    value: f64,
    magnitude: f64,
    inherited: f64,
    terms: usize,
}

impl Sum {
    pub fn add(&mut self, term: f64) {
        self.add_approx(Approx::exact(term));
    }

    pub fn add_approx(&mut self, term: Approx) {
        self.value += term.value;
        self.magnitude += term.value.abs();
        self.inherited += term.slack;
        self.terms += 1;
    }

    /// Each of n - 1 additions, in whatever order, and the rounding of each term to f32 before them
    /// is off by at most `F32` times a partial sum that the magnitude bounds.
    pub fn in_f32(self) -> Approx {
        let roundings = self.terms as f64 + 1.0;
        Approx {
            value: self.value,
            slack: self.inherited + roundings * F32 * (self.magnitude + self.inherited),
        }
    }
}

impl FromIterator<f64> for Sum {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Sum::default();
        for term in terms {
            sum.add(term);
        }
        sum
    }
}

impl FromIterator<Approx> for Sum {
    fn from_iter<I: IntoIterator<Item = Approx>>(terms: I) -> Self {
        let mut sum = Sum::default();
        for term in terms {
            sum.add_approx(term);
        }
        sum
    }
}

impl Case {
    pub fn new(file: &'static str, kernel: &'static str) -> Self {
        let oracle = Box::new(|_: &Inputs| panic!("a case needs an oracle"));
        Case {
            folder: "examples",
            file,
            kernel,
            bulk_copies: false,
            set: Vec::new(),
            inputs: Vec::new(),
            oracle,
            said: Mutex::default(),
        }
    }

    /// A kernel that is not among the examples.
    pub fn in_folder(self, folder: &'static str) -> Self {
        Case { folder, ..self }
    }

    /// A kernel that has the bulk copy engine work.
    pub fn with_bulk_copies(self) -> Self {
        Case {
            bulk_copies: true,
            ..self
        }
    }

    /// Whether the kernel is one for this target.
    pub fn is_for(&self, target: Target) -> bool {
        !self.bulk_copies || target.machine().bulk_copies
    }

    /// A parameter, written as Python writes it.
    pub fn set(mut self, name: &'static str, value: impl ToString) -> Self {
        self.set.push((name, value.to_string()));
        self
    }

    /// Several integer parameters at once.
    pub fn sizes<const N: usize>(mut self, sizes: [(&'static str, usize); N]) -> Self {
        self.set
            .extend(sizes.map(|(name, size)| (name, size.to_string())));
        self
    }

    pub fn flag(self, name: &'static str, value: bool) -> Self {
        self.set(name, if value { "True" } else { "False" })
    }

    pub fn input<const N: usize>(
        mut self,
        name: &'static str,
        shape: [usize; N],
        fill: Fill,
    ) -> Self {
        let count = shape.iter().product();
        let values = match fill {
            Fill::Given(values) => {
                assert_eq!(
                    values.len(),
                    count,
                    "{name} is filled with the wrong number of values"
                );
                values
            }
            Fill::Uniform(low, high) => {
                let mut random = Random::new(name, count);
                (0..count)
                    .map(|_| low + (high - low) * random.unit())
                    .collect()
            }
            Fill::Integers(low, high) => {
                let mut random = Random::new(name, count);
                (0..count)
                    .map(|_| low as f64 + ((high - low + 1) as f64 * random.unit()).floor())
                    .collect()
            }
        };
        self.inputs.push(Input {
            name,
            shape: shape.to_vec(),
            values,
        });
        self
    }

    pub fn check(
        mut self,
        oracle: impl Fn(&Inputs) -> Vec<Output> + Send + Sync + 'static,
    ) -> Self {
        self.oracle = Box::new(oracle);
        self
    }

    /// What must come out for these inputs.
    pub fn expected(&self, inputs: &Inputs) -> Arc<Vec<Output>> {
        // Held meanwhile: another target's test waits for the answer instead of working it out.
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, outputs)) = said.iter().find(|(known, _)| known == inputs) {
            return Arc::clone(outputs);
        }
        let outputs = Arc::new((self.oracle)(inputs));
        said.push((inputs.clone(), Arc::clone(&outputs)));
        outputs
    }

    /// The case as a command line would say it.
    pub fn title(&self) -> String {
        let mut title = format!("{}:{}", self.file, self.kernel);
        for (name, value) in &self.set {
            title.push_str(&format!(" {name}={value}"));
        }
        title
    }
}

/// Every case of every family of examples.
pub fn all_cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| {
        let mut cases = gemm::cases();
        cases.extend(sparse::cases());
        cases.extend(gemv::cases());
        cases.extend(elementwise::cases());
        cases.extend(rowwise::cases());
        cases.extend(attention::cases());
        cases.extend(scan::cases());
        cases
    })
}

/// A small case of every kernel with a pipelined loop in which the loop runs so often that each
/// version of a buffer is used again.
pub fn long_cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| {
        let mut cases = gemm::long_cases();
        cases.push(sparse::long_case());
        cases.push(gemv::long_case());
        cases.extend(rowwise::long_cases());
        cases.extend(attention::long_cases());
        cases.extend(scan::long_cases());
        cases
    })
}

/// A small generator (SplitMix64), seeded by what the numbers are for, so that cases do not disturb
/// one another and a failure can be repeated.
struct Random(u64);

impl Random {
    fn new(name: &str, count: usize) -> Self {
        let seed = name.bytes().fold(count as u64, |seed, byte| {
            seed.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        Random(seed)
    }

    /// The next number in [0, 1).
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 11) as f64 / (1_u64 << 53) as f64
    }
}

pub fn ceil_div(a: usize, b: usize) -> usize {
    a.div_ceil(b)
}
