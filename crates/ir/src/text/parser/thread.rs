//! Thread operations.

use cranelift_entity::EntityRef;

use crate::diag::{Code, Diagnostic};
use crate::dtype::DType;
use crate::expr::Expr;
use crate::func::VarKind;
use crate::ids::{Buffer, Var};
use crate::text::lexer::Tok;
use crate::text::parser::{Parser, Result1};
use crate::thread_op::{Combiner, ThreadOp};

/// What a line begins with that is one of these and has no result, or one that may be left out.
pub(super) const WORDS: &[&str] = &[
    "atomic_rmw",
    "atomic_vec_add",
    "atomic_store",
    "allreduce",
    "sync_threads",
    "sync_warp",
    "sync_grid",
    "mbarrier_arrive",
    "mbarrier_wait",
    "mbarrier_expect_tx",
    "dp4a",
    "extern",
    "print",
    "set_max_nreg",
];

impl<'t> Parser<'t> {
    /// The operation of this name whose result a variable takes, with the result's type. The
    /// caller puts the variable in.
    pub(super) fn op_with_result(&mut self, word: &str) -> Result1<Option<(ThreadOp, DType)>> {
        // Stands in until the variable exists, behind the line.
        let result = Var::new(0);
        let op = match word {
            "atomic_rmw" | "extern" => match self.thread_op(word)? {
                Some(op) => op,
                None => return Ok(None),
            },
            "atomic_load" => {
                let (buffer, indices) = self.element()?;
                let order = self.word()?;
                ThreadOp::AtomicLoad {
                    buffer,
                    indices,
                    order,
                    result,
                }
            }
            "shuffle" => {
                let kind = self.word()?;
                let value = self.expr()?;
                self.expect(",")?;
                let lane = self.expr()?;
                self.expect_word("width")?;
                let width = self.eq_number("a width")?;
                ThreadOp::Shuffle {
                    kind,
                    value,
                    lane,
                    width,
                    result,
                }
            }
            "vote" => ThreadOp::Vote {
                kind: self.word()?,
                value: self.expr()?,
                result,
            },
            "warp_reduce" => ThreadOp::WarpReduce {
                kind: self.word()?,
                value: self.expr()?,
                result,
            },
            _ => return Ok(None),
        };
        let dtype = op.result_type(&self.func).unwrap_or(DType::I32);
        Ok(Some((op, dtype)))
    }

    /// The operation of this name, if it is one without a result, or one whose result may be
    /// left out.
    pub(super) fn thread_op(&mut self, word: &str) -> Result1<Option<ThreadOp>> {
        Ok(Some(match word {
            "atomic_rmw" => {
                let op = self.word()?;
                let (buffer, indices) = self.element()?;
                self.expect(",")?;
                let value = self.expr()?;
                let order = self.word()?;
                ThreadOp::AtomicRmw {
                    op,
                    buffer,
                    indices,
                    value,
                    order,
                    result: None,
                }
            }
            "atomic_vec_add" => {
                let (dst, dst_indices) = self.element()?;
                self.expect(",")?;
                let (src, src_indices) = self.element()?;
                self.expect_word("lanes")?;
                let lanes = self.eq_number("a number of lanes")?;
                ThreadOp::AtomicVecAdd {
                    dst,
                    dst_indices,
                    src,
                    src_indices,
                    lanes,
                }
            }
            "atomic_store" => {
                let (buffer, indices) = self.element()?;
                self.expect(",")?;
                let value = self.expr()?;
                let order = self.word()?;
                ThreadOp::AtomicStore {
                    buffer,
                    indices,
                    value,
                    order,
                }
            }
            "allreduce" => self.allreduce()?,
            "sync_threads" => {
                let mut named = None;
                if self.eat_word("id") {
                    let id = self.eq_number("a barrier id")?;
                    self.expect_word("count")?;
                    named = Some((id, self.eq_number("a number of threads")?));
                }
                ThreadOp::SyncThreads { named }
            }
            "sync_warp" => ThreadOp::SyncWarp,
            "sync_grid" => ThreadOp::SyncGrid,
            "mbarrier_arrive" => {
                let (barrier, index) = self.barrier_element()?;
                ThreadOp::BarrierArrive { barrier, index }
            }
            "mbarrier_wait" => {
                let (barrier, index) = self.barrier_element()?;
                self.expect_word("parity")?;
                let parity = self.eq_expr()?;
                ThreadOp::BarrierWait {
                    barrier,
                    index,
                    parity,
                }
            }
            "mbarrier_expect_tx" => {
                let (barrier, index) = self.barrier_element()?;
                self.expect_word("bytes")?;
                let bytes = self.eq_expr()?;
                let arrive = self.eat_word("arrive");
                ThreadOp::BarrierExpect {
                    barrier,
                    index,
                    bytes,
                    arrive,
                }
            }
            "dp4a" => {
                let (a, a_indices) = self.element()?;
                self.expect(",")?;
                let (b, b_indices) = self.element()?;
                self.expect("->")?;
                let (c, c_indices) = self.element()?;
                ThreadOp::Dp4a {
                    a,
                    a_indices,
                    b,
                    b_indices,
                    c,
                    c_indices,
                }
            }
            "extern" => {
                let name = self.string()?;
                self.expect("(")?;
                let args = self.list(")", |p| p.expr())?;
                self.expect(":")?;
                let dtype = self.dtype()?;
                let pure = self.eat_word("pure");
                ThreadOp::Extern {
                    name,
                    args,
                    dtype,
                    pure,
                    result: None,
                }
            }
            "print" => {
                let message = self.string()?;
                let mut args = Vec::new();
                while self.eat(",") {
                    args.push(self.expr()?);
                }
                ThreadOp::Print { message, args }
            }
            "set_max_nreg" => {
                let count = self.number("a number of registers")?;
                let increase = self.eat_word("inc");
                if !increase {
                    self.expect_word("dec")?;
                }
                ThreadOp::SetMaxRegs { count, increase }
            }
            _ => return Ok(None),
        }))
    }

    /// `bar[0]`: a buffer and exactly one index.
    pub(super) fn barrier_element(&mut self) -> Result1<(Buffer, Expr)> {
        let start = self.here();
        let (buffer, indices) = self.element()?;
        match <[Expr; 1]>::try_from(indices) {
            Ok([index]) => Ok((buffer, index)),
            Err(indices) => Err(Box::new(
                Diagnostic::error(
                    Code("text-arity"),
                    self.since(start),
                    format!("a barrier has one index, {} are given", indices.len()),
                )
                .help("name the first barrier with `[0]`"),
            )),
        }
    }

    /// `allreduce (x: float32, y: float32) -> x + y, identity=0.0, v if c -> dst[0] axes=[x]`
    fn allreduce(&mut self) -> Result1<ThreadOp> {
        self.open_scope();
        let fold = self.combiner_fold();
        self.close_scope();
        let (lhs, rhs, body) = fold?;
        self.expect(",")?;
        self.expect_word("identity")?;
        let identity = self.eq_expr()?;
        self.expect(",")?;
        let value = self.expr()?;
        self.expect_word("if")?;
        let cond = self.expr()?;
        self.expect("->")?;
        let (dst, dst_indices) = self.element()?;
        let mut axes = Vec::new();
        if self.eat_word("axes") {
            self.expect("=")?;
            self.expect("[")?;
            axes = self.list("]", |p| {
                if p.peek() == Tok::Int {
                    return p.number("a thread axis");
                }
                let (word, span) = p.ident("a thread axis")?;
                let axis = ["x", "y", "z"].iter().position(|a| *a == word);
                axis.map(|a| a as u8)
                    .ok_or_else(|| p.unknown_attr(word, span, &["x", "y", "z"]))
            })?;
        }
        Ok(ThreadOp::AllReduce {
            combiner: Combiner {
                lhs,
                rhs,
                body,
                identity,
            },
            value,
            cond,
            dst,
            dst_indices,
            axes,
        })
    }

    fn combiner_fold(&mut self) -> Result1<(Var, Var, Expr)> {
        self.expect("(")?;
        let lhs = self.combiner_var()?;
        self.expect(",")?;
        let rhs = self.combiner_var()?;
        self.expect(")")?;
        self.expect("->")?;
        Ok((lhs, rhs, self.expr()?))
    }

    fn combiner_var(&mut self) -> Result1<Var> {
        let name = self.new_name("a variable's name")?;
        self.expect(":")?;
        let dtype = self.dtype()?;
        self.new_var(name, dtype, VarKind::Bound)
    }
}
