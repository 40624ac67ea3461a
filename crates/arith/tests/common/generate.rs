//! Random well-typed cases for the simplifier and the prover.

use tilewright_ir::{BinOp, DType, Expr, ExprKind, UnOp, Var};

use crate::build::{bin, cast, choose};

/// Where the generator's choices come from.
pub trait Choices {
    /// A number below `n`; an exhausted source says 0, which is always the simplest choice.
    fn below(&mut self, n: usize) -> usize;
}

/// SplitMix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Choices for Rng {
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// A variable of a case: its values are `lo ..= hi`.
#[derive(Clone, Debug)]
pub struct Input {
    pub var: Var,
    pub dtype: DType,
    pub lo: i128,
    pub hi: i128,
}

impl Input {
    pub fn expr(&self) -> Expr {
        Expr::var(self.var, self.dtype)
    }
}

/// An expression, its variables, and conditions that hold.
#[derive(Clone, Debug)]
pub struct Case {
    pub inputs: Vec<Input>,
    pub facts: Vec<Expr>,
    pub expr: Expr,
}

/// What a generator may use.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The type that most of the expression has.
    pub main: DType,
    /// A type that casts come from and go to.
    pub other: DType,
    pub depth: u32,
    /// Divisors that are not constants, products of variables, shifts by variables.
    pub nonlinear: bool,
    /// How wide the range of a bounded variable is at most.
    pub widest: i128,
    /// Constants to divide by; the largest value of the type comes on top.
    pub divisors: &'static [i128],
}

/// Divisors of all kinds.
pub const DIVISORS: &[i128] = &[2, 4, 8, 3, 16, 5, 6, 12, 32, 1, 7];

pub struct Generator<'a, C> {
    pub choices: &'a mut C,
    pub profile: Profile,
    inputs: Vec<Input>,
}

/// A case: about half of them compute an integer, the others a bool.
pub fn case<C: Choices>(choices: &mut C, profile: Profile, want_bool: Option<bool>) -> Case {
    let mut g = Generator {
        choices,
        profile,
        inputs: Vec::new(),
    };
    g.inputs();
    let facts = match g.choices.below(3) {
        2 => (0..1 + g.choices.below(2)).map(|_| g.boolean(1)).collect(),
        _ => Vec::new(),
    };
    let depth = g.profile.depth;
    let want_bool = want_bool.unwrap_or_else(|| g.choices.below(2) == 1);
    let main = g.profile.main;
    let expr = if want_bool {
        g.boolean(depth)
    } else {
        g.integer(main, depth)
    };
    Case {
        inputs: g.inputs,
        facts,
        expr,
    }
}

impl<C: Choices> Generator<'_, C> {
    fn inputs(&mut self) {
        let Profile { main, other, .. } = self.profile;
        for (index, dtype) in [main, main, main, other].into_iter().enumerate() {
            let (lo, hi) = self.range(dtype);
            self.inputs.push(Input {
                var: Var::from_u32(index as u32),
                dtype,
                lo,
                hi,
            });
        }
    }

    fn range(&mut self, dtype: DType) -> (i128, i128) {
        let (min, max) = dtype.scalar.int_range().expect("an integer type");
        let widest = self.profile.widest;
        let width = [1, 2, 4, 7, 8, 16, 31, 64][self.choices.below(8)].min(widest);
        let (lo, hi) = match self.choices.below(8) {
            0..=2 => (0, width - 1),
            3 => (1, width),
            // Around zero, and at both ends of the type.
            4 => (-(width / 2), width / 2),
            5 => (max - width + 1, max),
            6 => (min, min + width - 1),
            _ => (min, max),
        };
        (lo.max(min), hi.min(max))
    }

    fn constant(&mut self, dtype: DType) -> Expr {
        let (min, max) = dtype.scalar.int_range().expect("an integer type");
        let value = match self.choices.below(7) {
            0 => self.choices.below(4) as i128,
            1 => -(self.choices.below(4) as i128),
            2 => 1 << self.choices.below(dtype.scalar.bits() as usize),
            3 => (1 << self.choices.below(dtype.scalar.bits() as usize)) - 1,
            4 => max - self.choices.below(3) as i128,
            5 => min + self.choices.below(3) as i128,
            _ => self.choices.below(256) as i128 - 100,
        };
        Expr::int(value, dtype)
    }

    /// A positive constant of the kind that index arithmetic divides by.
    fn divisor(&mut self, dtype: DType) -> i128 {
        let max = dtype.scalar.int_range().expect("an integer type").1;
        let options = self.profile.divisors;
        let i = self.choices.below(options.len() + 1);
        let c = options.get(i).copied().unwrap_or(max);
        c.min(max)
    }

    fn variable(&mut self, dtype: DType) -> Expr {
        let same: Vec<Expr> = self
            .inputs
            .iter()
            .filter(|i| i.dtype == dtype)
            .map(Input::expr)
            .collect();
        match same.len() {
            0 => self.constant(dtype),
            n => same[self.choices.below(n)].clone(),
        }
    }

    /// `c1 x + c2 y + c3` with coefficients that share factors with `c`.
    fn linear(&mut self, dtype: DType, c: i128, depth: u32) -> Expr {
        let mut sum: Option<Expr> = None;
        for _ in 0..1 + self.choices.below(3) {
            let atom = if self.choices.below(3) == 2 {
                self.integer(dtype, depth.saturating_sub(1))
            } else {
                self.variable(dtype)
            };
            let k = [1, c, c / 2, 2 * c, -c, -1, 3, c * 3][self.choices.below(8)];
            let term = if k == 1 {
                atom
            } else {
                bin(BinOp::Mul, atom, Expr::int(k, dtype))
            };
            sum = Some(match sum {
                None => term,
                Some(s) if self.choices.below(4) == 3 => bin(BinOp::Sub, s, term),
                Some(s) => bin(BinOp::Add, s, term),
            });
        }
        let sum = sum.expect("at least one term");
        match self.choices.below(3) {
            0 => sum,
            1 => bin(
                BinOp::Add,
                sum,
                Expr::int(self.choices.below(20) as i128, dtype),
            ),
            _ => {
                let k = self.constant(dtype);
                bin(BinOp::Sub, sum, k)
            }
        }
    }

    /// `g x + y`, and a multiple of `g`, where `y` just fits below `g` or just does not.
    fn boundary(&mut self, dtype: DType) -> (Expr, Expr) {
        let same: Vec<&Input> = self.inputs.iter().filter(|i| i.dtype == dtype).collect();
        let max = dtype.scalar.int_range().expect("an integer type").1;
        let Some(y) = same.get(self.choices.below(same.len().max(1))) else {
            return (self.constant(dtype), Expr::int(1, dtype));
        };
        let g = (y.hi + self.choices.below(2) as i128).clamp(1, max);
        // Where only powers of two are asked for, the next one.
        let g = match self.profile.divisors.contains(&3) {
            true => g,
            false => ((g as u128).next_power_of_two() as i128).min(max / 2 + 1),
        };
        let y = y.expr();
        let x = self.variable(dtype);
        let c = g.checked_mul(1 + self.choices.below(4) as i128);
        let c = c.filter(|c| *c <= max).unwrap_or(g);
        let offset = Expr::int(self.choices.below(3) as i128 - 1, dtype);
        let sum = bin(BinOp::Add, bin(BinOp::Mul, x, Expr::int(g, dtype)), y);
        let sum = match self.choices.below(3) {
            0 => bin(BinOp::Add, sum, offset),
            _ => sum,
        };
        (sum, Expr::int(c, dtype))
    }

    /// A divisor that is not zero.
    fn nonzero(&mut self, dtype: DType, depth: u32) -> Expr {
        if self.profile.nonlinear && self.choices.below(3) == 2 {
            let e = self.integer(dtype, depth.saturating_sub(1));
            return match self.choices.below(2) {
                0 => bin(BinOp::Max, e, Expr::int(1, dtype)),
                _ => bin(BinOp::BitOr, e, Expr::int(1, dtype)),
            };
        }
        let c = self.divisor(dtype);
        if dtype.scalar.is_signed_int() && self.choices.below(10) == 9 {
            return Expr::int(-c, dtype);
        }
        Expr::int(c, dtype)
    }

    pub fn integer(&mut self, dtype: DType, depth: u32) -> Expr {
        if depth == 0 {
            return match self.choices.below(4) {
                3 => self.constant(dtype),
                _ => self.variable(dtype),
            };
        }
        let d = depth - 1;
        match self.choices.below(23) {
            0 => self.integer(dtype, 0),
            1..=3 => {
                let c = self.divisor(dtype);
                self.linear(dtype, c, d)
            }
            4..=6 => {
                let c = self.divisor(dtype);
                let op = [BinOp::FloorDiv, BinOp::FloorMod][self.choices.below(2)];
                let a = self.linear(dtype, c, d);
                bin(op, a, Expr::int(c, dtype))
            }
            7 => {
                // What recombines, or nearly.
                let (c, m) = (self.divisor(dtype), self.divisor(dtype));
                let x = self.integer(dtype, d);
                let q = bin(BinOp::FloorDiv, x.clone(), Expr::int(c, dtype));
                let q = match self.choices.below(3) {
                    0 => q,
                    _ => bin(BinOp::FloorMod, q, Expr::int(m, dtype)),
                };
                let scaled = bin(BinOp::Mul, q, Expr::int(c, dtype));
                match self.choices.below(3) {
                    0 => bin(BinOp::Sub, x, scaled),
                    _ => bin(
                        BinOp::Add,
                        scaled,
                        bin(BinOp::FloorMod, x, Expr::int(c, dtype)),
                    ),
                }
            }
            8 | 21 => {
                let ops = [
                    BinOp::FloorDiv,
                    BinOp::FloorMod,
                    BinOp::TruncDiv,
                    BinOp::TruncMod,
                ];
                let op = ops[self.choices.below(4)];
                let a = self.integer(dtype, d);
                let b = self.nonzero(dtype, d);
                bin(op, a, b)
            }
            9 | 10 => {
                let op = [BinOp::Min, BinOp::Max][self.choices.below(2)];
                let (a, b) = (self.integer(dtype, d), self.integer(dtype, d));
                bin(op, a, b)
            }
            11 => {
                let op = [BinOp::BitAnd, BinOp::BitOr, BinOp::BitXor][self.choices.below(3)];
                let a = self.integer(dtype, d);
                let b = if self.choices.below(2) == 0 {
                    self.constant(dtype)
                } else {
                    self.integer(dtype, d)
                };
                bin(op, a, b)
            }
            12 => {
                // A swizzle: rows against columns in units of c.
                let c = 1 << self.choices.below(3);
                let a = self.linear(dtype, c, d);
                let b = self.integer(dtype, d);
                bin(BinOp::BitXor, a, bin(BinOp::Mul, b, Expr::int(c, dtype)))
            }
            13 => {
                let op = [BinOp::Shl, BinOp::Shr][self.choices.below(2)];
                let a = self.integer(dtype, d);
                let bits = dtype.scalar.bits() as usize;
                let by = if self.profile.nonlinear && self.choices.below(3) == 2 {
                    let x = self.integer(dtype, 0);
                    bin(BinOp::BitAnd, x, Expr::int(bits as i128 - 1, dtype))
                } else {
                    Expr::int(self.choices.below(bits) as i128, dtype)
                };
                bin(op, a, by)
            }
            14 => {
                let cond = self.boolean(d);
                let (then, otherwise) = (self.integer(dtype, d), self.integer(dtype, d));
                choose(self.choices.below(2) == 1, cond, then, otherwise)
            }
            15 => {
                // Comparing what is chosen, as min and max spelled out.
                let (a, b) = (self.integer(dtype, d), self.integer(dtype, d));
                let op = comparison(self.choices.below(6));
                let cond = bin(op, a.clone(), b.clone());
                let flip = self.choices.below(2) == 1;
                let (x, y) = if flip { (b, a) } else { (a, b) };
                choose(false, cond, x, y)
            }
            16 | 17 => {
                let from = if dtype == self.profile.main {
                    self.profile.other
                } else {
                    self.profile.main
                };
                let a = match self.choices.below(4) {
                    3 => self.boolean(d),
                    _ => self.integer(from, d),
                };
                cast(a, dtype)
            }
            18 => {
                let a = self.integer(dtype, d);
                Expr::new(
                    ExprKind::Unary(UnOp::BitNot, a),
                    dtype,
                    tilewright_ir::Span::NONE,
                )
            }
            19 | 20 => {
                let op = [BinOp::FloorDiv, BinOp::FloorMod][self.choices.below(2)];
                let (a, c) = self.boundary(dtype);
                bin(op, a, c)
            }
            _ if self.profile.nonlinear => {
                let (a, b) = (self.integer(dtype, d), self.integer(dtype, d));
                bin(BinOp::Mul, a, b)
            }
            _ => {
                let (a, b) = (self.integer(dtype, d), self.integer(dtype, d));
                bin(BinOp::Sub, a, b)
            }
        }
    }

    pub fn boolean(&mut self, depth: u32) -> Expr {
        let d = depth.saturating_sub(1);
        let dtype = if self.choices.below(6) == 5 {
            self.profile.other
        } else {
            self.profile.main
        };
        match self.choices.below(if depth == 0 { 2 } else { 13 }) {
            0 => {
                let op = comparison(self.choices.below(6));
                let (a, b) = (self.variable(dtype), self.constant(dtype));
                bin(op, a, b)
            }
            1 => {
                let op = comparison(self.choices.below(6));
                let (a, b) = (self.variable(dtype), self.variable(dtype));
                bin(op, a, b)
            }
            2..=4 => {
                let op = comparison(self.choices.below(6));
                let c = self.divisor(dtype);
                let (a, b) = (self.linear(dtype, c, d), self.linear(dtype, c, d));
                bin(op, a, b)
            }
            5 | 6 => {
                let op = comparison(self.choices.below(6));
                let (a, b) = (self.integer(dtype, d), self.constant(dtype));
                bin(op, a, b)
            }
            7 => {
                let op = comparison(self.choices.below(6));
                let (a, b) = (self.integer(dtype, d), self.integer(dtype, d));
                bin(op, a, b)
            }
            8 | 9 => {
                let ops = [
                    BinOp::LogicalAnd,
                    BinOp::LogicalOr,
                    BinOp::BitXor,
                    BinOp::Eq,
                ];
                let op = ops[self.choices.below(4)];
                let (a, b) = (self.boolean(d), self.boolean(d));
                bin(op, a, b)
            }
            10 => !self.boolean(d),
            11 => {
                let op = comparison(self.choices.below(6));
                let (a, c) = self.boundary(dtype);
                bin(op, a, c)
            }
            _ => {
                let a = self.integer(dtype, d);
                cast(a, DType::BOOL)
            }
        }
    }
}

fn comparison(i: usize) -> BinOp {
    [
        BinOp::Lt,
        BinOp::Le,
        BinOp::Eq,
        BinOp::Ne,
        BinOp::Gt,
        BinOp::Ge,
    ][i]
}
