//! The table of rewrite rules.
//!
//! Each rule has a name, its law, and a counter in every [`Analyzer`](crate::Analyzer). Laws
//! hold in the machine's arithmetic, modulo `2^bits`. "Exact" in a law means that the dividend
//! or both sides were shown not to wrap ([`facts`](crate::facts)); without it the rule does not
//! apply. Small letters `c g k m n` are constants, `x y p q r` any expressions.

use std::fmt;

macro_rules! rules {
    ($( $(#[doc = $law:literal])+ $rule:ident $name:literal; )*) => {
        /// A rewrite rule.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Rule { $( $(#[doc = $law])+ $rule, )* }

        impl Rule {
            /// Every rule, in the order of the table.
            pub const ALL: &[Rule] = &[$(Rule::$rule,)*];

            pub const fn name(self) -> &'static str {
                match self { $(Rule::$rule => $name,)* }
            }

            /// What the rule says, and when.
            pub const fn law(self) -> &'static str {
                match self { $(Rule::$rule => concat!($($law),+),)* }
            }
        }

        const COUNT: usize = [$($name,)*].len();
    };
}

rules! {
    /// An operation on constants is its value in the type; floats where rounding is certain.
    FoldConstants "fold-constants";
    /// `k (y % m) + k m (y // m) = k y`
    DivModRecombine "div-mod-recombine";
    /// `k (y % m) + k m ((y // m) % n) = k (y % (m n))`, m n a value of the type.
    ModModRecombine "mod-mod-recombine";
    /// `k y - k m (y // m) = k (y % m)`
    SubDivToMod "sub-div-to-mod";
    /// `(g p) (k q) = g k (p q)`
    MulPullConstant "mul-pull-constant";
    /// `x // 1 = x`, `x // -1 = -x`
    DivByOne "div-by-one";
    /// `x // c = k` if the bounds of x lie in one quotient.
    DivBounded "div-bounded";
    /// `(x // m) // c = x // (m c)`, m and c positive, m c a value of the type.
    DivDiv "div-div";
    /// `(x % m) // c = (x // c) % (m / c)`, c positive and dividing m.
    ModDiv "mod-div";
    /// `(c q + r) // c = q + r // c`, exact, r a value of the type.
    DivSplit "div-split";
    /// `(g q + r) // c = q // (c / g)`, exact, g divides c, 0 <= r < g.
    DivCommonFactor "div-common-factor";
    /// `x // y = 0` and `x % y = x` where 0 <= x < y is proved.
    DivBelowDivisor "div-below-divisor";
    /// `0 // x = 0 % x = 0`, x not zero.
    DivOfZero "div-of-zero";
    /// `x // x = 1`, `x % x = 0`, x not zero.
    DivBySelf "div-by-self";
    /// `(y q + r) // y = q` and `(y q + r) % y = r`, exact, 0 <= r < y proved.
    DivMultiple "div-multiple";
    /// Rounding toward zero is rounding down for whole and for positive quotients.
    TruncToFloor "trunc-to-floor";
    /// `x % 1 = x % -1 = 0`
    ModByOne "mod-by-one";
    /// `x % c = x - k c` if the bounds of x lie in the quotient k.
    ModBounded "mod-bounded";
    /// `x % c = r` if x is known to be congruent to r modulo c.
    ModKnown "mod-known";
    /// `(x % m) % c = x % c`, c positive and dividing m.
    ModMod "mod-mod";
    /// `(k x + y) % c = ((k % c) x + y) % c`, exact or c a power of two; remainders by multiples
    /// of c are opened likewise.
    ModReduce "mod-reduce";
    /// `(g q + r) % c = g (q % (c / g)) + r`, exact or c a power of two, g divides c, 0 <= r < g.
    ModCommonFactor "mod-common-factor";
    /// A comparison that bounds, congruences or facts decide, both sides exact.
    CompareDecide "compare-decide";
    /// `g p + c <= 0` is `p <= (-c) // g`, exact.
    CompareDivide "compare-divide";
    /// `g p + r <= k` is `p <= q` if (k - r) // g is q for every r, exact.
    CompareDropSmall "compare-drop-small";
    /// An equality that the difference modulo 2^bits, its bounds or facts decide.
    EqualDecide "equal-decide";
    /// `g p == g q` is `p == q` if g p - g q is within 2^bits of zero.
    EqualDivide "equal-divide";
    /// `min(x, x) = max(x, x) = x`
    MinMaxSame "min-max-same";
    /// `min(x, y) = x` where x <= y is proved; max likewise.
    MinMaxDecide "min-max-decide";
    /// `min(max(x, y), y) = y`, `min(min(x, y), y) = min(x, y)`, and the same for operands in a
    /// known order.
    MinMaxAbsorb "min-max-absorb";
    /// `!(x < y)` is `y <= x` for integers; `!!x = x`; negation moves into `and` and `or`.
    NotPush "not-push";
    /// `true && x = x`, `false && x = false`; `or` likewise.
    LogicConstant "logic-constant";
    /// `x && x = x || x = x`
    LogicSame "logic-same";
    /// `x && !x = false`, `x || !x = true`
    LogicOpposite "logic-opposite";
    /// Bit operations and comparisons of a bool with itself or with a constant.
    BoolIdentity "bool-identity";
    /// A condition that the scope assumes or refutes.
    KnownCondition "known-condition";
    /// `c ? x : y` for a constant c.
    ChooseConstant "choose-constant";
    /// `c ? x : x = x`
    ChooseSame "choose-same";
    /// `!c ? x : y = c ? y : x`
    ChooseNot "choose-not";
    /// `c ? true : false = c`, `c ? false : true = !c`
    ChooseBool "choose-bool";
    /// `x < y ? x : y = min(x, y)`, integers; max likewise.
    ChooseMinMax "choose-min-max";
    /// A cast or reinterpretation to the type that the value has.
    CastSame "cast-same";
    /// `bool(x)` is `x != 0`.
    CastToBool "cast-to-bool";
    /// `t(u(x)) = t(x)` for integers if u has the bits of t or holds every value of x.
    CastCast "cast-cast";
    /// `t(k u(x) + c) = k x + c` for x of type t and u no narrower.
    CastNarrowSum "cast-narrow-sum";
    /// Reinterpreting an integer as another of its width is a cast.
    ReinterpretInt "reinterpret-int";
    /// Rounding an integer changes nothing.
    RoundInt "round-int";
    /// `abs(x)` is x for x >= 0 and -x for x <= 0.
    AbsSign "abs-sign";
    /// `x * 1 = x / 1 = x - 0.0 = x + -0.0 = x` for floats, NaN and zeros included.
    FloatIdentity "float-identity";
    /// `~x = -1 - x`
    BitNotLinear "bit-not-linear";
    /// `x & x = x | x = x`, `x ^ x = 0`
    BitsSame "bits-same";
    /// Bit operations with no bits, all bits, or two constants.
    BitsConstant "bits-constant";
    /// `x & (2^k - 1) = x % 2^k`
    AndMask "and-mask";
    /// `x & -2^k = x - x % 2^k`
    AndHighMask "and-high-mask";
    /// `x & y = 0` if 0 <= x < 2^k and 2^k divides y.
    AndDisjoint "and-disjoint";
    /// `x | y = x + y` if 0 <= x < 2^k and 2^k divides y.
    OrDisjoint "or-disjoint";
    /// `x ^ y = x + y` if 0 <= x < 2^k and 2^k divides y.
    XorDisjoint "xor-disjoint";
    /// `(x ^ y) ^ y = x`
    XorCancel "xor-cancel";
    /// `(g p + r) ^ (g q) = g (p ^ q) + r`, exact, g a power of two, 0 <= r < g.
    XorSplit "xor-split";
    /// `x << k = 2^k x`
    ShiftLeft "shift-left";
    /// `x >> k = x // 2^k`, 2^k a value of the type.
    ShiftRight "shift-right";
    /// `broadcast(x) op broadcast(y) = broadcast(x op y)`
    BroadcastOut "broadcast-out";
    /// `ramp(x, 0) = broadcast(x)`
    RampFlat "ramp-flat";
    /// `ramp(x, s) + ramp(y, t) = ramp(x + y, s + t)`; broadcasts are ramps of stride 0.
    RampGather "ramp-gather";
    /// `ramp(x, s) * broadcast(y) = ramp(x y, s y)`
    RampTimes "ramp-times";
    /// `ramp(x, s) // c = broadcast(x // c)` and `ramp(x, s) % c = ramp(x % c, s)` if every lane
    /// has the quotient of x.
    RampDiv "ramp-div";
    /// `broadcast(x)[k] = x`, `ramp(x, s)[k] = x + s k`
    LaneOf "lane-of";
}

/// How often each rule was applied by one analyzer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleCounts([u64; COUNT]);

impl Default for RuleCounts {
    fn default() -> RuleCounts {
        RuleCounts([0; COUNT])
    }
}

impl RuleCounts {
    pub fn get(&self, rule: Rule) -> u64 {
        self.0[rule as usize]
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The rules that were applied, most often first.
    pub fn applied(&self) -> Vec<(Rule, u64)> {
        let all = Rule::ALL.iter().map(|&r| (r, self.get(r)));
        let mut applied: Vec<(Rule, u64)> = all.filter(|&(_, n)| n > 0).collect();
        applied.sort_unstable_by_key(|&(r, n)| (std::cmp::Reverse(n), r));
        applied
    }

    /// Adds what another analyzer counted.
    pub fn merge(&mut self, other: &RuleCounts) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    pub(crate) fn hit(&mut self, rule: Rule) {
        self.0[rule as usize] += 1;
    }
}

/// A table: count, name and law of each rule that was applied.
impl fmt::Display for RuleCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (rule, count) in self.applied() {
            writeln!(f, "{count:>8}  {:<20} {}", rule.name(), rule.law().trim())?;
        }
        Ok(())
    }
}
