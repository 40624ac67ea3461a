//! Tile operations: how each is printed and parsed.

use crate::expr::Expr;
use crate::ids::Buffer;
use crate::micro_op::MmaInst;
use crate::text::lexer::Tok;
use crate::text::parser::{Parser, Result1};
use crate::text::printer::Printer;
use crate::text::words::Word;
use crate::tile_op::{
    AtomicSource, CopyHints, CopyKind, CopyOp, GemmKind, GemmOp, GemmPlan, GemmPolicy, Im2colOp,
    ReduceOp, Scales, ScanOp, Sparse, TileOp,
};

impl Printer<'_> {
    pub(super) fn tile_op(&mut self, op: &TileOp) {
        self.put(op.word());
        self.put(" ");
        match op {
            TileOp::Copy(copy) => self.copy(copy),
            TileOp::Fill { dst, value } => {
                self.region(dst);
                self.put(", ");
                self.expr(value);
            }
            TileOp::Gemm(gemm) => self.gemm(gemm),
            TileOp::Reduce(r) => {
                self.put_fmt(format_args!("{} ", r.kind.name()));
                self.arrow(&r.src, &r.dst);
                self.attr("dim", Some(r.dim));
                self.flag("clear", r.clear);
                self.flag("nan_propagate", r.nan_propagate);
            }
            TileOp::Scan(s) => {
                self.put_fmt(format_args!("{} ", s.kind.word()));
                self.arrow(&s.src, &s.dst);
                self.attr("dim", Some(s.dim));
                self.flag("reverse", s.reverse);
            }
            TileOp::Atomic {
                op: rmw,
                dst,
                value,
                order,
            } => {
                self.put_fmt(format_args!("{} ", rmw.word()));
                self.region(dst);
                self.put(", ");
                match value {
                    // In full, a region is told from a load of one element.
                    AtomicSource::Region(r) => {
                        if r.dims.is_empty() {
                            self.put("region ");
                        }
                        self.region_as(r, true);
                    }
                    AtomicSource::Value(e) => self.expr(e),
                }
                self.flag(order.word(), true);
            }
            TileOp::Transpose { src, dst } => {
                self.arrow(src, dst);
            }
            TileOp::Im2col(i) => {
                self.buffer(i.image);
                self.put(" -> ");
                self.region(&i.dst);
                self.expr_attr("m", &i.m_step);
                self.expr_attr("k", &i.k_step);
                self.attr("kernel", Some(i.kernel));
                self.attr("stride", Some(i.stride));
                self.attr("dilation", Some(i.dilation));
                self.attr("pad", Some(i.pad));
            }
            TileOp::ReducerInit { reducer, init } => {
                self.buffer(*reducer);
                if let Some(init) = init {
                    self.put(", ");
                    self.expr(init);
                }
            }
            TileOp::ReducerUpdate {
                reducer,
                indices,
                value,
            } => {
                self.element(*reducer, indices);
                self.put(", ");
                self.expr(value);
            }
            TileOp::ReducerFinalize { reducer, dst } => {
                self.buffer(*reducer);
                if let Some(dst) = dst {
                    self.put(" -> ");
                    self.region(dst);
                }
            }
        }
    }

    fn copy(&mut self, copy: &CopyOp) {
        self.arrow(&copy.src, &copy.dst);
        match &copy.kind {
            CopyKind::Sync => {}
            CopyKind::Async => self.put(" async"),
            CopyKind::Tma {
                barrier,
                multicast,
                alone,
            } => {
                self.put(" tma");
                self.flag("alone", *alone);
                self.barrier_attr(barrier);
                self.attr("multicast", *multicast);
            }
            CopyKind::TmaRows { warps: [m, n] } => {
                self.put_fmt(format_args!(" tma warps=[{m}, {n}]"));
            }
        }
        let hints = &copy.hints;
        self.attr("coalesced", hints.coalesced_width);
        self.flag("no_tma", hints.disable_tma);
        self.attr("evict", hints.eviction.map(Word::word));
        if let Some(inst) = &hints.prefer_instruction {
            self.put(" prefer=");
            self.string(inst);
        }
    }

    /// ` barrier=bar[0]`
    fn barrier_attr(&mut self, barrier: &Option<(Buffer, Expr)>) {
        if let Some((buffer, index)) = barrier {
            self.put(" barrier=");
            self.element(*buffer, std::slice::from_ref(index));
        }
    }

    fn gemm(&mut self, gemm: &GemmOp) {
        self.region(&gemm.a);
        self.put(", ");
        self.region(&gemm.b);
        self.put(" -> ");
        self.region(&gemm.c);
        self.flag("trans_a", gemm.trans_a);
        self.flag("trans_b", gemm.trans_b);
        if let Some(Sparse { e, trans_e }) = &gemm.sparse {
            self.put(" sparse=");
            self.region(e);
            self.flag("trans_e", *trans_e);
        }
        if let Some(Scales { a, b, every }) = &gemm.scales {
            self.put(" scales=");
            self.region(a);
            self.put(", ");
            self.region(b);
            self.put(&format!(" every=[{}, {}]", every[0], every[1]));
        }
        if gemm.policy != GemmPolicy::Square {
            self.attr("policy", Some(gemm.policy.word()));
        }
        if gemm.clear != Expr::bool(false) {
            self.expr_attr("clear", &gemm.clear);
        }
        if gemm.k_pack != 1 {
            self.attr("k_pack", Some(gemm.k_pack));
        }
        if gemm.kind != GemmKind::Auto {
            self.attr("kind", Some(gemm.kind.word()));
        }
        self.barrier_attr(&gemm.barrier);
        if let Some(GemmPlan {
            inst,
            warps: [m, n],
            run,
            parts,
            across,
        }) = &gemm.plan
        {
            self.put_fmt(format_args!(" inst=\"{inst}\" warps=[{m}, {n}]"));
            if let Some([rows, cols]) = run {
                self.put_fmt(format_args!(" run=[{rows}, {cols}]"));
            }
            if let [rows, cols] = parts
                && *parts != [1, 1]
            {
                self.put_fmt(format_args!(" parts=[{rows}, {cols}]"));
            }
            if let [rows, cols] = across
                && *across != [1, 1]
            {
                self.put_fmt(format_args!(" across=[{rows}, {cols}]"));
            }
        }
    }
}

impl<'t> Parser<'t> {
    /// The tile operation of this name, if it is one.
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
                "tma" if self.eat_word("warps") => {
                    kind = CopyKind::TmaRows {
                        warps: self.eq_pair("a number of warps")?,
                    };
                }
                "tma" => {
                    let alone = self.eat_word("alone");
                    let mut barrier = None;
                    if self.eat_word("barrier") {
                        self.expect("=")?;
                        barrier = Some(self.barrier_element()?);
                    }
                    let mut multicast = None;
                    if self.eat_word("multicast") {
                        multicast = Some(self.eq_number("a bit for each block")?);
                    }
                    kind = CopyKind::Tma {
                        barrier,
                        multicast,
                        alone,
                    };
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

    /// `=[2, 1]`
    /// `=[2, 1]`.
    fn eq_pair(&mut self, what: &str) -> Result1<[u32; 2]> {
        self.expect("=")?;
        self.expect("[")?;
        let first = self.number(what)?;
        self.expect(",")?;
        let pair = [first, self.number(what)?];
        self.expect("]")?;
        Ok(pair)
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
            sparse: None,
            scales: None,
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
                "sparse" => {
                    self.expect("=")?;
                    let e = self.region()?;
                    let trans_e = self.eat_word("trans_e");
                    gemm.sparse = Some(Sparse { e, trans_e });
                }
                "scales" => {
                    self.expect("=")?;
                    let a = self.region()?;
                    self.expect(",")?;
                    let b = self.region()?;
                    self.expect_word("every")?;
                    let every = self.eq_pair("a number of elements")?;
                    gemm.scales = Some(Scales { a, b, every });
                }
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
                    let warps = self.eq_pair("a number of warps")?;
                    let run = match self.eat_word("run") {
                        true => Some(self.eq_pair("a number of elements")?),
                        false => None,
                    };
                    let parts = match self.eat_word("parts") {
                        true => self.eq_pair("a number of parts")?,
                        false => [1, 1],
                    };
                    let across = match self.eat_word("across") {
                        true => self.eq_pair("a number of elements")?,
                        false => [1, 1],
                    };
                    gemm.plan = Some(GemmPlan {
                        inst,
                        warps,
                        run,
                        parts,
                        across,
                    });
                }
                _ => {
                    let known = [
                        "trans_a", "trans_b", "sparse", "scales", "policy", "clear", "k_pack",
                        "kind", "barrier", "inst",
                    ];
                    return Err(self.unknown_attr(attr, span, &known));
                }
            }
        }
        Ok(gemm)
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
}
