//! Values of terms at many points, for questions that are answered by looking at every point.

use rustc_hash::FxHashMap;
use tilewright_ir::{BinOp, Scalar, UnOp};

use crate::analyzer::Analyzer;
use crate::fold::fold_int;
use crate::simplify::is_integral;
use crate::term::{Node, Term};

/// How to compute some terms from the values of variables, in order.
#[derive(Debug)]
pub(crate) struct Program {
    steps: Vec<(Step, Scalar)>,
    /// Where the value of each term that was asked for ends up.
    results: Vec<usize>,
}

#[derive(Debug)]
enum Step {
    Constant(i128),
    /// The variable with this number.
    Input(usize),
    Sum(Vec<(usize, i128)>, i128),
    Not(usize),
    Binary(BinOp, usize, usize, Scalar),
    Choose(usize, usize, usize),
    Same(usize),
}

impl Analyzer {
    /// The program of scalar integer and bool terms over these variables; `None` if they depend
    /// on anything else.
    pub(crate) fn program(&self, terms: &[Term], vars: &[Term]) -> Option<Program> {
        let all = self.arena.reachable(terms.iter().copied());
        let mut place: FxHashMap<Term, usize> = FxHashMap::default();
        let mut steps = Vec::with_capacity(all.len());
        for t in all {
            let dtype = self.dtype(t);
            if dtype.lanes != 1 || !is_integral(dtype.scalar) {
                return None;
            }
            let at = |t: Term| place.get(&t).copied();
            let step = match *self.node(t) {
                Node::Int(value) => Step::Constant(value),
                Node::Var(_) => Step::Input(vars.iter().position(|&v| v == t)?),
                Node::Sum(ref terms, constant) => {
                    let terms = terms.iter().map(|&(t, c)| Some((at(t)?, c)));
                    Step::Sum(terms.collect::<Option<_>>()?, constant)
                }
                Node::Unary(UnOp::Not, a) => Step::Not(at(a)?),
                Node::Binary(op, a, b) => Step::Binary(op, at(a)?, at(b)?, self.dtype(a).scalar),
                Node::Choose {
                    cond,
                    then,
                    otherwise,
                    ..
                } => Step::Choose(at(cond)?, at(then)?, at(otherwise)?),
                Node::Cast(a) => Step::Same(at(a)?),
                _ => return None,
            };
            place.insert(t, steps.len());
            steps.push((step, dtype.scalar));
        }
        let results = terms.iter().map(|t| place.get(t).copied());
        Some(Program {
            results: results.collect::<Option<_>>()?,
            steps,
        })
    }
}

impl Program {
    /// Computes every step where the variables have these values; `None` is undefined.
    pub(crate) fn run(&self, inputs: &[i128], values: &mut Vec<Option<i128>>) {
        values.clear();
        for (step, scalar) in &self.steps {
            let value = self.step(step, inputs, values);
            values.push(value.map(|v| scalar.wrap(v)));
        }
    }

    /// The values of the terms that were asked for, in their order.
    pub(crate) fn results(&self, values: &[Option<i128>]) -> impl Iterator<Item = Option<i128>> {
        self.results.iter().map(|&r| values[r])
    }

    fn step(&self, step: &Step, inputs: &[i128], values: &[Option<i128>]) -> Option<i128> {
        match *step {
            Step::Constant(value) => Some(value),
            Step::Input(index) => inputs.get(index).copied(),
            Step::Sum(ref terms, constant) => {
                let mut sum = constant;
                for &(t, c) in terms {
                    sum = sum.wrapping_add(values[t]?.wrapping_mul(c));
                }
                Some(sum)
            }
            Step::Not(a) => Some(1 - values[a]?),
            // The right side does not count when the left one decides.
            Step::Binary(BinOp::LogicalAnd, a, b, _) => match values[a]? {
                0 => Some(0),
                _ => values[b],
            },
            Step::Binary(BinOp::LogicalOr, a, b, _) => match values[a]? {
                0 => values[b],
                _ => Some(1),
            },
            Step::Binary(op, a, b, scalar) => fold_int(op, values[a]?, values[b]?, scalar),
            Step::Choose(cond, then, otherwise) => match values[cond]? {
                0 => values[otherwise],
                _ => values[then],
            },
            Step::Same(a) => values[a],
        }
    }
}
