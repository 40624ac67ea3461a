//! Micro-ops: how they are printed and parsed.

use crate::diag::{Code, Diagnostic};
use crate::dtype::DType;
use crate::expr::Expr;
use crate::func::VarKind;
use crate::micro_op::{Access, Arrival, Inst, MicroKind, MicroOp};
use crate::text::parser::{Parser, Result1};
use crate::text::printer::Printer;
use crate::text::words::Word;

impl Printer<'_> {
    pub(super) fn micro_op(&mut self, op: &MicroOp) {
        self.names.open();
        self.put_fmt(format_args!("{} ", op.kind.name()));
        if !op.axes.is_empty() {
            self.put("for ");
            self.list(&op.axes, |p, (var, extent)| {
                p.new_var(*var, Some(DType::I32));
                p.put_fmt(format_args!(" < {extent}"));
            });
            self.put(if op.turns { " turning do " } else { " do " });
        }
        self.list(&op.sources, |p, s| p.access(s));
        self.put(" -> ");
        self.access(&op.dest);
        self.put(" inst=");
        self.string(&op.inst.to_string());
        self.attr("width", Some(op.width));
        self.attr("apart", (op.apart != 1).then_some(op.apart));
        if let Some(pred) = &op.pred {
            self.expr_attr("pred", pred);
        }
        if let Some(otherwise) = &op.otherwise {
            self.expr_attr("otherwise", otherwise);
        }
        self.attr("counter", op.counter.map(|c| c.name()));
        if let Some(arrival) = &op.arrives {
            self.put(" arrives=");
            self.element(arrival.barrier, std::slice::from_ref(&arrival.index));
            self.attr("multicast", arrival.multicast);
        }
        self.attr("evict", op.evict.map(Word::word));
        self.names.close();
    }

    fn access(&mut self, access: &Access) {
        self.region(&access.region);
        if let Some(slot) = &access.slot {
            self.expr_attr("slot", slot);
        }
        self.put(" at [");
        self.list(&access.at, |p, e| p.expr(e));
        self.put("]");
    }
}

impl<'t> Parser<'t> {
    /// The micro-op of this name, if it is one.
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
        let apart = match self.eat_word("apart") {
            true => self.eq_number("a number of slots")?,
            false => 1,
        };
        let pred = self.optional_expr_attr("pred")?;
        let otherwise = self.optional_expr_attr("otherwise")?;
        let mut counter = None;
        if self.eat_word("counter") {
            self.expect("=")?;
            counter = Some(self.word()?);
        }
        let mut arrives = None;
        if self.eat_word("arrives") {
            self.expect("=")?;
            let (barrier, index) = self.barrier_element()?;
            let multicast = match self.eat_word("multicast") {
                true => Some(self.eq_number("a bit for each block")?),
                false => None,
            };
            arrives = Some(Arrival {
                barrier,
                index,
                multicast,
            });
        }
        let mut evict = None;
        if self.eat_word("evict") {
            self.expect("=")?;
            evict = Some(self.word()?);
        }
        Ok(MicroOp {
            kind,
            inst,
            axes,
            turns,
            dest,
            sources,
            width,
            apart,
            pred,
            otherwise,
            counter,
            arrives,
            evict,
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

    /// `"mfma.16x16x32.bfloat16.float32"`
    pub(super) fn instruction<I>(&mut self, of: impl Fn(&str) -> Option<I>) -> Result1<I> {
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
}
