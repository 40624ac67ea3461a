//! Thread operations: how each is printed and parsed.

use crate::expr::Expr;
use crate::func::VarKind;
use crate::ids::{Buffer, Var};
use crate::text::lexer::Tok;
use crate::text::parser::{Parser, Result1};
use crate::text::printer::Printer;
use crate::text::words::Word;
use crate::thread_op::{ArriveAt, Combiner, ThreadOp};

impl Printer<'_> {
    pub(super) fn thread_op(&mut self, op: &ThreadOp) {
        let start = self.out.len();
        self.put(op.word());
        match op {
            ThreadOp::AtomicRmw {
                op: rmw,
                buffer,
                indices,
                value,
                order,
                ..
            } => {
                self.flag(rmw.word(), true);
                self.put(" ");
                self.element(*buffer, indices);
                self.put(", ");
                self.expr(value);
                self.flag(order.word(), true);
            }
            ThreadOp::AtomicVecAdd {
                dst,
                dst_indices,
                src,
                src_indices,
                lanes,
            } => {
                self.put(" ");
                self.element(*dst, dst_indices);
                self.put(", ");
                self.element(*src, src_indices);
                self.attr("lanes", Some(lanes));
            }
            ThreadOp::AtomicLoad {
                buffer,
                indices,
                order,
                ..
            } => {
                self.put(" ");
                self.element(*buffer, indices);
                self.flag(order.word(), true);
            }
            ThreadOp::AtomicStore {
                buffer,
                indices,
                value,
                order,
            } => {
                self.put(" ");
                self.element(*buffer, indices);
                self.put(", ");
                self.expr(value);
                self.flag(order.word(), true);
            }
            ThreadOp::Shuffle {
                kind,
                value,
                lane,
                width,
                ..
            } => {
                self.flag(kind.word(), true);
                self.put(" ");
                self.expr(value);
                self.put(", ");
                self.expr(lane);
                self.attr("width", Some(width));
            }
            ThreadOp::Vote { kind, value, .. } => {
                self.flag(kind.word(), true);
                self.put(" ");
                self.expr(value);
            }
            ThreadOp::WarpReduce { kind, value, .. } => {
                self.flag(kind.name(), true);
                self.put(" ");
                self.expr(value);
            }
            ThreadOp::AllReduce {
                combiner,
                value,
                cond,
                dst,
                dst_indices,
                axes,
            } => {
                self.put(" (");
                self.names.open();
                self.typed_var(combiner.lhs);
                self.put(", ");
                self.typed_var(combiner.rhs);
                self.put(") -> ");
                self.expr(&combiner.body);
                self.names.close();
                self.put(", identity=");
                self.expr(&combiner.identity);
                self.put(", ");
                self.expr(value);
                self.put(" if ");
                self.expr(cond);
                self.put(" -> ");
                self.element(*dst, dst_indices);
                self.list_attr("axes", axes, |p, axis| match axis {
                    0 => p.put("x"),
                    1 => p.put("y"),
                    2 => p.put("z"),
                    other => p.put(&other.to_string()),
                });
            }
            ThreadOp::SyncThreads { named } => {
                if let Some((id, count)) = named {
                    self.attr("id", Some(id));
                    self.attr("count", Some(count));
                }
            }
            ThreadOp::SyncWarp
            | ThreadOp::SyncGrid
            | ThreadOp::SyncCluster
            | ThreadOp::ClusterArrive
            | ThreadOp::ClusterWait => {}
            ThreadOp::BarrierArrive {
                barrier,
                index,
                warp,
                at,
            } => {
                self.barrier(*barrier, index);
                self.flag("warp", *warp);
                match at {
                    ArriveAt::Own => {}
                    ArriveAt::All => self.flag("cluster", true),
                    ArriveAt::Block(rank) => self.expr_attr("block", rank),
                }
            }
            ThreadOp::BarrierWait {
                barrier,
                index,
                parity,
            } => {
                self.barrier(*barrier, index);
                self.expr_attr("parity", parity);
            }
            ThreadOp::BarrierExpect {
                barrier,
                index,
                bytes,
                arrive,
            } => {
                self.barrier(*barrier, index);
                self.expr_attr("bytes", bytes);
                self.flag("arrive", *arrive);
            }
            ThreadOp::Dp4a {
                a,
                a_indices,
                b,
                b_indices,
                c,
                c_indices,
            } => {
                self.put(" ");
                self.element(*a, a_indices);
                self.put(", ");
                self.element(*b, b_indices);
                self.put(" -> ");
                self.element(*c, c_indices);
            }
            ThreadOp::Extern {
                name,
                args,
                dtype,
                pure,
                ..
            } => {
                self.put(" ");
                self.string(name);
                self.put("(");
                self.list(args, |p, e| p.expr(e));
                self.put_fmt(format_args!("): {dtype}"));
                self.flag("pure", *pure);
            }
            ThreadOp::Print { message, args } => {
                self.put(" ");
                self.string(message);
                for arg in args {
                    self.put(", ");
                    self.expr(arg);
                }
            }
            ThreadOp::SetMaxRegs { count, increase } => {
                self.put_fmt(format_args!(" {count}"));
                self.flag(if *increase { "inc" } else { "dec" }, true);
            }
        }
        // `x = `; the name is not visible to what follows on the line.
        if let Some(var) = op.result() {
            let text = self.out.split_off(start);
            self.new_var(var, op.result_type(self.func));
            self.put(" = ");
            self.put(&text);
        }
    }

    fn barrier(&mut self, barrier: Buffer, index: &Expr) {
        self.put(" ");
        self.element(barrier, std::slice::from_ref(index));
    }
}

impl<'t> Parser<'t> {
    /// The operation of this name, if it is one that has a result, or has none, as asked for.
    /// The variable that takes the result stands in until it exists, behind the line.
    pub(super) fn thread_op(
        &mut self,
        word: &str,
        result: Option<Var>,
    ) -> Result1<Option<ThreadOp>> {
        Ok(Some(match (word, result) {
            ("atomic_rmw", result) => {
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
                    result,
                }
            }
            ("atomic_vec_add", None) => {
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
            ("atomic_store", None) => {
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
            ("atomic_load", Some(result)) => {
                let (buffer, indices) = self.element()?;
                let order = self.word()?;
                ThreadOp::AtomicLoad {
                    buffer,
                    indices,
                    order,
                    result,
                }
            }
            ("shuffle", Some(result)) => {
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
            ("vote", Some(result)) => ThreadOp::Vote {
                kind: self.word()?,
                value: self.expr()?,
                result,
            },
            ("warp_reduce", Some(result)) => ThreadOp::WarpReduce {
                kind: self.word()?,
                value: self.expr()?,
                result,
            },
            ("allreduce", None) => self.allreduce()?,
            ("sync_threads", None) => {
                let mut named = None;
                if self.eat_word("id") {
                    let id = self.eq_number("a barrier id")?;
                    self.expect_word("count")?;
                    named = Some((id, self.eq_number("a number of threads")?));
                }
                ThreadOp::SyncThreads { named }
            }
            ("sync_warp", None) => ThreadOp::SyncWarp,
            ("sync_grid", None) => ThreadOp::SyncGrid,
            ("sync_cluster", None) => ThreadOp::SyncCluster,
            ("cluster_arrive", None) => ThreadOp::ClusterArrive,
            ("cluster_wait", None) => ThreadOp::ClusterWait,
            ("mbarrier_arrive", None) => {
                let (barrier, index) = self.barrier_element()?;
                let warp = self.eat_word("warp");
                let at = if self.eat_word("cluster") {
                    ArriveAt::All
                } else if self.eat_word("block") {
                    ArriveAt::Block(self.eq_expr()?)
                } else {
                    ArriveAt::Own
                };
                ThreadOp::BarrierArrive {
                    barrier,
                    index,
                    warp,
                    at,
                }
            }
            ("mbarrier_wait", None) => {
                let (barrier, index) = self.barrier_element()?;
                self.expect_word("parity")?;
                let parity = self.eq_expr()?;
                ThreadOp::BarrierWait {
                    barrier,
                    index,
                    parity,
                }
            }
            ("mbarrier_expect_tx", None) => {
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
            ("dp4a", None) => {
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
            ("extern", result) => {
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
                    result,
                }
            }
            ("print", None) => {
                let message = self.string()?;
                let mut args = Vec::new();
                while self.eat(",") {
                    args.push(self.expr()?);
                }
                ThreadOp::Print { message, args }
            }
            ("set_max_nreg", None) => {
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
