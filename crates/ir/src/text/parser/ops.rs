//! Tile, micro and device operations.

use crate::buffer::{Region, RegionDim};
use crate::device_op::{BarrierKind, DeviceOp};
use crate::diag::{Code, Diagnostic};
use crate::dtype::DType;
use crate::expr::Expr;
use crate::func::VarKind;
use crate::micro_op::{Access, Inst, MicroKind, MicroOp, MmaInst};
use crate::text::lexer::Tok;
use crate::text::parser::{Parser, Result1};
use crate::tile_op::{
    AtomicSource, CopyHints, CopyKind, CopyOp, GemmKind, GemmOp, GemmPlan, GemmPolicy, Im2colOp,
    ReduceOp, ScanOp, TileOp,
};

impl<'t> Parser<'t> {
    /// `A[i * 64 +: 64, j]`
    pub(super) fn region(&mut self) -> Result1<Region> {
        let buffer = self.buffer()?;
        self.expect("[")?;
        let dims = self.list("]", |p| {
            let start = p.expr()?;
            let extent = if p.eat("+:") {
                p.expr()?
            } else {
                Expr::int(1, start.dtype()).with_span(start.span())
            };
            Ok(RegionDim { start, extent })
        })?;
        Ok(Region { buffer, dims })
    }

    fn arrow(&mut self) -> Result1<(Region, Region)> {
        let src = self.region()?;
        self.expect("->")?;
        Ok((src, self.region()?))
    }

    pub(super) fn tile_op(&mut self, word: &str) -> Result1<Option<TileOp>> {
        Ok(Some(match word {
            "copy" => TileOp::Copy(self.copy()?),
            "fill" => {
                let dst = self.region()?;
                self.expect(",")?;
                let value = self.expr()?;
                TileOp::Fill { dst, value }
            }
            "gemm" => TileOp::Gemm(self.gemm()?),
            "reduce" => {
                let kind = self.word()?;
                let (src, dst) = self.arrow()?;
                let mut op = ReduceOp {
                    kind,
                    src,
                    dst,
                    dim: 0,
                    clear: false,
                    nan_propagate: false,
                };
                self.expect_word("dim")?;
                op.dim = self.eq_number("a dimension")?;
                while let Some((attr, span)) = self.attr_name() {
                    match attr {
                        "clear" => op.clear = true,
                        "nan_propagate" => op.nan_propagate = true,
                        _ => {
                            return Err(self.unknown_attr(attr, span, &["clear", "nan_propagate"]));
                        }
                    }
                }
                TileOp::Reduce(op)
            }
            "scan" => {
                let kind = self.word()?;
                let (src, dst) = self.arrow()?;
                self.expect_word("dim")?;
                let dim = self.eq_number("a dimension")?;
                let reverse = self.eat_word("reverse");
                TileOp::Scan(ScanOp {
                    kind,
                    src,
                    dst,
                    dim,
                    reverse,
                })
            }
            "atomic" => {
                let op = self.word()?;
                let dst = self.region()?;
                self.expect(",")?;
                let value = if self.region_follows() {
                    self.eat_word("region");
                    AtomicSource::Region(self.region()?)
                } else {
                    AtomicSource::Value(self.expr()?)
                };
                let order = self.word()?;
                TileOp::Atomic {
                    op,
                    dst,
                    value,
                    order,
                }
            }
            "transpose" => {
                let (src, dst) = self.arrow()?;
                TileOp::Transpose { src, dst }
            }
            "im2col" => self.im2col()?,
            "reducer_init" => {
                let reducer = self.buffer()?;
                let init = if self.eat(",") {
                    Some(self.expr()?)
                } else {
                    None
                };
                TileOp::ReducerInit { reducer, init }
            }
            "reducer_update" => {
                let (reducer, indices) = self.element()?;
                self.expect(",")?;
                let value = self.expr()?;
                TileOp::ReducerUpdate {
                    reducer,
                    indices,
                    value,
                }
            }
            "reducer_finalize" => {
                let reducer = self.buffer()?;
                let dst = if self.eat("->") {
                    Some(self.region()?)
                } else {
                    None
                };
                TileOp::ReducerFinalize { reducer, dst }
            }
            _ => return Ok(None),
        }))
    }

    /// Whether a region comes next rather than a value: it has `+:` in its brackets, or says
    /// so by `region`.
    fn region_follows(&self) -> bool {
        if self.is_word("region") && self.peek_at(1) == Tok::Ident {
            return true;
        }
        if !(self.peek() == Tok::Ident && self.is_at(1, "[")) {
            return false;
        }
        let mut open = 0usize;
        for token in &self.tokens[self.at + 1..] {
            match token.tok {
                Tok::Sign("[" | "(") => open += 1,
                Tok::Sign("]" | ")") => {
                    open = open.saturating_sub(1);
                    if open == 0 {
                        return false;
                    }
                }
                Tok::Sign("+:") if open == 1 => return true,
                Tok::Newline | Tok::End | Tok::Sign("{" | "}") => return false,
                _ => {}
            }
        }
        false
    }

    fn copy(&mut self) -> Result1<CopyOp> {
        let (src, dst) = self.arrow()?;
        let mut kind = CopyKind::Sync;
        let mut hints = CopyHints::default();
        while let Some((attr, span)) = self.attr_name() {
            match attr {
                "async" => kind = CopyKind::Async,
                "tma" => {
                    let mut barrier = None;
                    if self.eat_word("barrier") {
                        self.expect("=")?;
                        barrier = Some(self.barrier_element()?);
                    }
                    kind = CopyKind::Tma { barrier };
                }
                "coalesced" => hints.coalesced_width = Some(self.eq_number("a width")?),
                "no_tma" => hints.disable_tma = true,
                "evict" => {
                    self.expect("=")?;
                    hints.eviction = Some(self.word()?);
                }
                "prefer" => {
                    self.expect("=")?;
                    hints.prefer_instruction = Some(self.string()?);
                }
                _ => {
                    let known = ["async", "tma", "coalesced", "no_tma", "evict", "prefer"];
                    return Err(self.unknown_attr(attr, span, &known));
                }
            }
        }
        Ok(CopyOp {
            src,
            dst,
            kind,
            hints,
        })
    }

    fn gemm(&mut self) -> Result1<GemmOp> {
        let a = self.region()?;
        self.expect(",")?;
        let b = self.region()?;
        self.expect("->")?;
        let c = self.region()?;
        let mut gemm = GemmOp {
            a,
            b,
            c,
            trans_a: false,
            trans_b: false,
            policy: GemmPolicy::Square,
            clear: Expr::bool(false),
            k_pack: 1,
            kind: GemmKind::Auto,
            barrier: None,
            plan: None,
        };
        while let Some((attr, span)) = self.attr_name() {
            match attr {
                "trans_a" => gemm.trans_a = true,
                "trans_b" => gemm.trans_b = true,
                "policy" => {
                    self.expect("=")?;
                    gemm.policy = self.word()?;
                }
                "clear" => gemm.clear = self.eq_expr()?,
                "k_pack" => gemm.k_pack = self.eq_number("a packing factor")?,
                "kind" => {
                    self.expect("=")?;
                    gemm.kind = self.word()?;
                }
                "barrier" => {
                    self.expect("=")?;
                    gemm.barrier = Some(self.barrier_element()?);
                }
                "inst" => {
                    self.expect("=")?;
                    let inst = self.instruction(MmaInst::from_name)?;
                    self.expect_word("warps")?;
                    self.expect("=")?;
                    self.expect("[")?;
                    let m = self.number("a number of warps")?;
                    self.expect(",")?;
                    let warps = [m, self.number("a number of warps")?];
                    self.expect("]")?;
                    gemm.plan = Some(GemmPlan { inst, warps });
                }
                _ => {
                    let known = [
                        "trans_a", "trans_b", "policy", "clear", "k_pack", "kind", "barrier",
                        "inst",
                    ];
                    return Err(self.unknown_attr(attr, span, &known));
                }
            }
        }
        Ok(gemm)
    }

    /// `"mfma.16x16x32.bfloat16.float32"`
    fn instruction<I>(&mut self, of: impl Fn(&str) -> Option<I>) -> Result1<I> {
        let at = self.here();
        let name = self.string()?;
        of(&name).ok_or_else(|| {
            let error = Diagnostic::error(
                Code("text-instruction"),
                at,
                format!("`{name}` is not an instruction"),
            );
            Box::new(error.help(
                "instructions look like `load`, `ldmatrix.x4.trans` or `mfma.16x16x32.bfloat16.float32`",
            ))
        })
    }

    fn im2col(&mut self) -> Result1<TileOp> {
        let image = self.buffer()?;
        self.expect("->")?;
        let dst = self.region()?;
        self.expect_word("m")?;
        let m_step = self.eq_expr()?;
        self.expect_word("k")?;
        let k_step = self.eq_expr()?;
        self.expect_word("kernel")?;
        let kernel = self.eq_number("a filter size")?;
        self.expect_word("stride")?;
        let stride = self.eq_number("a stride")?;
        self.expect_word("dilation")?;
        let dilation = self.eq_number("a dilation")?;
        self.expect_word("pad")?;
        let pad = self.eq_number("a padding")?;
        Ok(TileOp::Im2col(Im2colOp {
            image,
            dst,
            m_step,
            k_step,
            kernel,
            stride,
            dilation,
            pad,
        }))
    }

    pub(super) fn micro_op(&mut self, word: &str) -> Result1<Option<MicroOp>> {
        let Some(kind) = MicroKind::from_name(word) else {
            return Ok(None);
        };
        self.open_scope();
        let op = self.micro_op_of(kind);
        self.close_scope();
        op.map(Some)
    }

    fn micro_op_of(&mut self, kind: MicroKind) -> Result1<MicroOp> {
        let mut axes = Vec::new();
        let mut turns = false;
        if self.eat_word("for") {
            loop {
                let name = self.new_name("an instruction index")?;
                let dtype = if self.eat(":") {
                    self.dtype()?
                } else {
                    DType::I32
                };
                let var = self.new_var(name, dtype, VarKind::Loop)?;
                self.expect("<")?;
                axes.push((var, self.number("a number of instructions")?));
                if !self.eat(",") {
                    break;
                }
            }
            turns = self.eat_word("turning");
            self.expect_word("do")?;
        }
        let sources = self.list("->", |p| p.access())?;
        let dest = self.access()?;
        self.expect_word("inst")?;
        self.expect("=")?;
        let inst = self.instruction(Inst::from_name)?;
        self.expect_word("width")?;
        let width = self.eq_number("a number of elements")?;
        let pred = self.optional_expr_attr("pred")?;
        let otherwise = self.optional_expr_attr("otherwise")?;
        let mut counter = None;
        if self.eat_word("counter") {
            self.expect("=")?;
            counter = Some(self.word()?);
        }
        Ok(MicroOp {
            kind,
            inst,
            axes,
            turns,
            dest,
            sources,
            width,
            pred,
            otherwise,
            counter,
        })
    }

    fn access(&mut self) -> Result1<Access> {
        let region = self.region()?;
        let slot = self.optional_expr_attr("slot")?;
        self.expect_word("at")?;
        self.expect("[")?;
        let at = self.list("]", |p| p.expr())?;
        Ok(Access { region, slot, at })
    }

    fn optional_expr_attr(&mut self, name: &str) -> Result1<Option<Expr>> {
        if !self.eat_word(name) {
            return Ok(None);
        }
        self.eq_expr().map(Some)
    }

    pub(super) fn device_op(&mut self, word: &str) -> Result1<Option<DeviceOp>> {
        Ok(Some(match word {
            "wait" => {
                let counter = self.word()?;
                self.expect("(")?;
                let at_most = self.number("a number of operations")?;
                self.expect(")")?;
                DeviceOp::Wait { counter, at_most }
            }
            "commit" => DeviceOp::Commit(self.word()?),
            "barrier" => DeviceOp::Barrier(self.barrier_kind()?),
            "fence" => DeviceOp::Fence(self.word()?),
            "set_prio" => DeviceOp::SetPrio(self.number("a priority")?),
            "iteration" => DeviceOp::Iteration(Some(self.expr()?)),
            "end_iteration" => DeviceOp::Iteration(None),
            "sched_barrier" => DeviceOp::SchedBarrier(self.number("a mask")?),
            "sched_group_barrier" => {
                self.expect_word("mask")?;
                let mask = self.eq_number("a mask")?;
                self.expect_word("size")?;
                let size = self.eq_number("a size")?;
                self.expect_word("group")?;
                let group = self.eq_number("a group")?;
                DeviceOp::SchedGroupBarrier { mask, size, group }
            }
            "barrier_init" => {
                let (barrier, index) = self.barrier_element()?;
                self.expect_word("count")?;
                let count = self.eq_number("a number of arrivals")?;
                DeviceOp::BarrierInit {
                    barrier,
                    index,
                    count,
                }
            }
            _ => return Ok(None),
        }))
    }

    fn barrier_kind(&mut self) -> Result1<BarrierKind> {
        let (word, span) = self.ident("a kind of barrier")?;
        Ok(match word {
            "block" => BarrierKind::Block,
            "bare" => BarrierKind::Bare,
            "named" => {
                self.expect("(")?;
                let id = self.number("a barrier id")?;
                self.expect(",")?;
                let count = self.number("a number of threads")?;
                self.expect(")")?;
                BarrierKind::Named { id, count }
            }
            "cond" => {
                self.expect("(")?;
                let cond = self.expr()?;
                self.expect(")")?;
                BarrierKind::Cond(cond)
            }
            _ => {
                let known = ["block", "bare", "named", "cond"];
                return Err(self.unknown_attr(word, span, &known));
            }
        })
    }
}
