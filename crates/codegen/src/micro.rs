//! Micro-ops: one machine instruction for each point of their axes.

use tilewright_arith::Analyzer;
use tilewright_ir::{Access, Expr, Inst, MicroOp, MmaInst, Span};
use tilewright_layout::lanes::mma_sp;

use crate::ctype::ctype;
use crate::device::Piece;
use crate::kernel::Emitter;
use crate::place::{Kind, Place};
use crate::stmt::registers;
use crate::{Emit, unsupported};

impl Emitter<'_> {
    pub(crate) fn micro_op(&mut self, op: &MicroOp, span: Span) -> Emit<()> {
        if op.count() == 0 {
            return Ok(());
        }
        self.over_axes(op, |e| e.instruction(op, span))?;
        // What a later wait counts is issued here and not later.
        if op.counter.is_some() && op.counter == self.machine.load_counter {
            self.needs.piece(Piece::Waits);
            self.out.line("tw::fix_order();");
        }
        Ok(())
    }

    /// Runs `f` inside the loops over the axes.
    fn over_axes(&mut self, op: &MicroOp, f: impl FnOnce(&mut Self) -> Emit<()>) -> Emit<()> {
        self.names.open();
        self.analyzer.push();
        let mut open = 0;
        let mut before: Option<String> = None;
        for &(var, extent) in &op.axes {
            let dtype = self.func.vars[var].dtype;
            let range = tilewright_arith::Interval::new(0, i128::from(extent) - 1);
            self.analyzer.bind_interval(var, dtype, range);
            if extent == 1 {
                self.settled.insert(var, Expr::int(0, dtype));
                before = None;
                continue;
            }
            let name = self.declare(var);
            self.unrolled.insert(var);
            self.out.directive("#pragma unroll");
            match &before {
                Some(row) if op.turns => {
                    let turn = self.names.take("turn");
                    self.out.line(format!(
                        "for (int {turn} = 0; {turn} < {extent}; ++{turn}) {{"
                    ));
                    self.out.indent();
                    self.out.line(format!(
                        "const int {name} = {row} % 2 == 0 ? {turn} : {} - {turn};",
                        extent - 1
                    ));
                }
                _ => {
                    self.out.line(format!(
                        "for (int {name} = 0; {name} < {extent}; ++{name}) {{"
                    ));
                    self.out.indent();
                }
            }
            before = Some(name);
            open += 1;
        }
        let result = f(self);
        for _ in 0..open {
            self.out.dedent();
            self.out.line("}");
        }
        for (var, _) in &op.axes {
            self.settled.remove(var);
            self.unrolled.remove(var);
        }
        self.analyzer.pop();
        self.names.close();
        result
    }

    pub(crate) fn access(&mut self, access: &Access, span: Span) -> Emit<Place> {
        self.place(
            access.region.buffer,
            &access.at,
            access.slot.as_ref(),
            0,
            span,
        )
    }

    /// The bytes that a thread moves where one instruction does it, and the scalars.
    pub(crate) fn pieces(&self, op: &MicroOp) -> (Option<u32>, u32) {
        let dtype = self.func.buffers[op.dest.region.buffer].dtype;
        let scalars = op.width * u32::from(dtype.lanes);
        let bits = scalars * dtype.scalar.bits();
        let whole = bits.is_multiple_of(8) && matches!(bits / 8, 1 | 2 | 4 | 8 | 16);
        (whole.then_some(bits / 8), scalars)
    }

    /// A machine vector that has a value in every element.
    fn splat(&mut self, value: &Expr, scalar: tilewright_ir::Scalar, bytes: u32) -> Emit<String> {
        if is_zero(value) {
            return Ok(format!("tw::Vector<{bytes}>::type()"));
        }
        let value = self.settled(value);
        let code = self.expr(&value, 0)?;
        let code = self.convert(code, value.dtype().scalar, scalar);
        Ok(format!("tw::splat<{bytes}>({})", code.text))
    }

    fn instruction(&mut self, op: &MicroOp, span: Span) -> Emit<()> {
        match op.inst {
            Inst::Load | Inst::Store => self.plain(op, span),
            Inst::CpAsync | Inst::LdMatrix { .. } | Inst::StMatrix { .. }
                if !self.machine.has(op.inst) =>
            {
                unsupported(span, format!("{} has no `{}`", self.target, op.inst))
            }
            Inst::CpAsync => self.cp_async(op, span),
            Inst::LdMatrix { tiles, trans } => {
                let (source, dest) = self.matrix_operands(op, span)?;
                self.needs.piece(Piece::Matrix);
                let name = if trans { "ldmatrix_trans" } else { "ldmatrix" };
                let operands = format!("{}, {}", dest.words(), source.in_shared());
                self.out.line(match &self.when {
                    Some(when) => format!("tw::{name}_if<{tiles}>({when}, {operands});"),
                    None => format!("tw::{name}<{tiles}>({operands});"),
                });
                Ok(())
            }
            Inst::StMatrix { tiles, trans } => {
                let (source, dest) = self.matrix_operands(op, span)?;
                self.needs.piece(Piece::StMatrix);
                let name = if trans { "stmatrix_trans" } else { "stmatrix" };
                self.out.line(format!(
                    "tw::{name}<{tiles}>({}, {});",
                    dest.in_shared(),
                    source.words()
                ));
                Ok(())
            }
            Inst::Mma(inst) => {
                let ([a, b, told @ ..], None) = (op.sources.as_slice(), &op.pred) else {
                    return unsupported(
                        span,
                        format!("`{inst}` takes two factors and no condition"),
                    );
                };
                if !self.machine.has(op.inst) || op.sources.len() != inst.sources() {
                    return unsupported(span, format!("{} has no `{inst}`", self.target));
                }
                let mut all = op.sources.iter().map(|s| self.func.root(s.region.buffer));
                let computed = all.any(|buffer| self.plan.computed.contains(&buffer));
                let (a, b) = (self.access(a, span)?, self.access(b, span)?);
                let c = self.access(&op.dest, span)?;
                let numbered = c.kind == Kind::Numbered;
                let name = match numbered {
                    true => self.needs.numbered_mma(inst, computed),
                    false => self.needs.mma(inst),
                };
                let mut operands = vec![c.words(), a.words(), b.words()];
                for told in told {
                    operands.push(match inst.is_sparse() {
                        true => self.metadata(&inst, told, span)?,
                        false => {
                            let scale = self.access(told, span)?.read();
                            format!("tw::to_bits({})", scale.text)
                        }
                    });
                }
                self.out
                    .line(format!("tw::{name}({});", operands.join(", ")));
                if self.held && !numbered && self.in_vector_registers(&op.dest) {
                    let sums = u32::from(inst.m) * u32::from(inst.n);
                    self.hold(&c.words(), sums / self.machine.warp_size);
                }
                Ok(())
            }
            Inst::GroupMma { mma, a, b, fresh } if self.machine.has(op.inst) => {
                self.group_mma(op, (mma, fresh), [a, b], span)
            }
            Inst::BufferLoadLds if self.machine.has(op.inst) => self.buffer_load_lds(op, span),
            Inst::DsReadTr if self.machine.has(op.inst) => {
                let (source, dest) = self.matrix_operands(op, span)?;
                let bits = self.func.buffers[op.dest.region.buffer].dtype.bits();
                if !matches!(bits, 8 | 16) {
                    return unsupported(span, format!("`{}` of {bits} bits", op.inst));
                }
                self.needs.piece(Piece::Transposed);
                self.out.line(format!(
                    "tw::read_transposed<{bits}>({}, {});",
                    dest.words(),
                    source.address()
                ));
                Ok(())
            }
            Inst::Tma(_) if self.machine.has(op.inst) => self.tma_copy(op, span),
            Inst::GroupMma { .. } | Inst::BufferLoadLds | Inst::DsReadTr | Inst::Tma(_) => {
                unsupported(
                    span,
                    format!("`{}` is not generated for {}", op.inst, self.target),
                )
            }
        }
    }

    /// Whether sums are certainly no accumulation registers: these are taken where half of the others are
    /// too few.
    fn in_vector_registers(&self, sums: &Access) -> bool {
        const MOST_BITS: i64 = 128 * 32;
        let data = &self.func.buffers[sums.region.buffer];
        let slots = data
            .const_shape()
            .map(|shape| shape.iter().product::<i64>());
        slots.is_some_and(|slots| slots * i64::from(data.dtype.bits()) <= MOST_BITS)
    }

    /// The word of metadata that a lane gives a sparse instruction.
    fn metadata(&mut self, inst: &MmaInst, e: &Access, span: Span) -> Emit<String> {
        let bits = self.func.buffers[e.region.buffer].dtype.bits();
        let e = self.access(e, span)?;
        if !mma_sp::takes_halves(inst, bits) {
            return Ok(match e.kind {
                Kind::Regs => format!("*{}", e.words()),
                _ => e.read().text,
            });
        }
        let (first, second) = (e.read(), e.plus(1).read());
        Ok(format!("tw::own_halves({}, {})", first.text, second.text))
    }

    fn matrix_operands(&mut self, op: &MicroOp, span: Span) -> Emit<(Place, Place)> {
        let ([source], None) = (op.sources.as_slice(), &op.pred) else {
            return unsupported(
                span,
                format!("`{}` takes one source and no condition", op.inst),
            );
        };
        Ok((self.access(source, span)?, self.access(&op.dest, span)?))
    }

    fn plain(&mut self, op: &MicroOp, span: Span) -> Emit<()> {
        let [source] = op.sources.as_slice() else {
            return unsupported(span, format!("`{}` takes one source", op.inst));
        };
        let (source, dest) = (self.access(source, span)?, self.access(&op.dest, span)?);
        let (_, scalars) = self.pieces(op);
        let loads = match self.buffer_load(op)? {
            Some((line, true)) => {
                self.out.line(line);
                return Ok(());
            }
            loads => loads.map(|(line, _)| line),
        };
        let transfer = |e: &mut Self| match loads {
            Some(line) => {
                e.out.line(line);
                Ok(())
            }
            None => e.transfer(&source, &dest, (scalars, op), span),
        };
        let Some(pred) = &op.pred else {
            return transfer(self);
        };
        let pred = self.scalar(pred)?;
        self.out.line(format!("if ({pred}) {{"));
        self.out.indent();
        transfer(self)?;
        self.out.dedent();
        if let (Inst::Load, Some(value)) = (op.inst, &op.otherwise) {
            let value = self.settled(value);
            let code = self.expr(&value, 0)?;
            let code = self.convert(code, value.dtype().scalar, dest.scalar);
            self.out.line("} else {");
            self.out.indent();
            match dest.is_register() && op.apart == 1 {
                true => {
                    self.needs.piece(Piece::Memory);
                    self.out.line(format!(
                        "tw::fill<{scalars}>({}, {}, {});",
                        dest.name, dest.offset.text, code.text
                    ));
                }
                false if is_run(&dest) && (scalars * dest.scalar.bits()).is_multiple_of(8) => {
                    self.needs.piece(Piece::Runs);
                    let bytes = scalars * dest.scalar.bits() / 8;
                    let (element, to) = (ctype(dest.scalar), dest.address());
                    self.out.line(format!(
                        "tw::fill_run<{bytes}, {element}>({to}, {});",
                        code.text
                    ));
                }
                false => {
                    for i in 0..scalars {
                        let to = dest.plus(i * op.apart);
                        let line = to.write(&code.text, &mut self.needs);
                        self.out.line(line);
                    }
                }
            }
            self.out.dedent();
        }
        self.out.line("}");
        Ok(())
    }

    /// Moves scalars from one place to another, as the micro-op has them.
    fn transfer(
        &mut self,
        source: &Place,
        dest: &Place,
        (scalars, op): (u32, &MicroOp),
        span: Span,
    ) -> Emit<()> {
        match (source.kind, dest.kind) {
            (Kind::Numbered, Kind::Memory) => {
                self.through_registers(source, dest, (scalars, op.apart), false);
                return Ok(());
            }
            (Kind::Memory, Kind::Numbered) => {
                self.through_registers(dest, source, (scalars, op.apart), true);
                return Ok(());
            }
            _ if op.apart > 1 => return self.transfer_apart(op, source, dest, span),
            _ => {}
        }
        let held = |place: &Place| place.is_register() || place.kind == Kind::Numbered;
        match (held(source), held(dest)) {
            (true, false) => self.move_elements(source, dest, scalars, false),
            (false, true) => self.move_elements(dest, source, scalars, true),
            // Parts of bytes go one by one.
            (false, false) if !(scalars * source.scalar.bits()).is_multiple_of(8) => {
                for i in 0..scalars {
                    let value = source.plus(i).read();
                    let line = dest.plus(i).write(&value.text, &mut self.needs);
                    self.out.line(line);
                }
            }
            (false, false) if is_run(source) => {
                self.needs.piece(Piece::Runs);
                self.out.line(format!(
                    "tw::copy_run<{}>({}, {});",
                    scalars * source.scalar.bits() / 8,
                    dest.address(),
                    source.address()
                ));
            }
            (false, false) => {
                self.needs.piece(Piece::Memory);
                for (at, bytes) in split(scalars, source.scalar.bits()) {
                    let (from, to) = (source.plus(at), dest.plus(at));
                    self.out.line(format!(
                        "tw::drop<{bytes}>({}, tw::fetch<{bytes}>({}));",
                        to.address(),
                        from.address()
                    ));
                }
            }
            (true, true) => {
                for i in 0..scalars {
                    let value = source.plus(i).read();
                    let line = dest.plus(i).write(&value.text, &mut self.needs);
                    self.out.line(line);
                }
            }
        }
        Ok(())
    }

    /// Moves scalars between memory and sums that have registers by number.
    fn through_registers(
        &mut self,
        sums: &Place,
        memory: &Place,
        (scalars, apart): (u32, u32),
        load: bool,
    ) {
        self.out.line("{");
        self.out.indent();
        self.names.open();
        let part = Place::registers(sums.scalar, self.names.take("part"));
        self.out.line(registers(&part.name, sums.scalar, scalars));
        if load {
            self.move_elements(&part, memory, scalars, true);
        }
        for at in 0..scalars {
            let (from, to) = match load {
                true => (part.plus(at), sums.plus(at * apart)),
                false => (sums.plus(at * apart), part.plus(at)),
            };
            let line = to.write(&from.read().text, &mut self.needs);
            self.out.line(line);
        }
        if !load {
            self.move_elements(&part, memory, scalars, false);
        }
        self.names.close();
        self.out.dedent();
        self.out.line("}");
    }

    /// Moves scalars between memory and registers that stand apart.
    fn transfer_apart(
        &mut self,
        op: &MicroOp,
        source: &Place,
        dest: &Place,
        span: Span,
    ) -> Emit<()> {
        let ((_, scalars), apart) = (self.pieces(op), op.apart);
        let (regs, memory, load) = match (source.is_register(), dest.is_register()) {
            (true, false) => (source, dest, false),
            (false, true) => (dest, source, true),
            _ => return unsupported(span, "a copy of elements that stand apart"),
        };
        let bits = regs.scalar.bits();
        if !bits.is_multiple_of(8) {
            return unsupported(span, "parts of bytes that stand apart");
        }
        self.needs.piece(Piece::Apart);
        let in_turn = load && regs.kind == Kind::Regs && rows_in_turn(op, 32 / bits);
        let load_name = if in_turn { "load_row" } else { "load_apart" };
        for (at, bytes) in split(scalars, bits) {
            let count = u32::from(bytes) * 8 / bits;
            let (r, m) = (regs.plus(at * apart), memory.plus(at));
            if count == 1 {
                self.move_one(&r, &m, load);
                continue;
            }
            let (name, offset, address) = (&r.name, &r.offset.text, m.address());
            self.out.line(match load {
                true => format!("tw::{load_name}<{count}, {apart}>({name}, {offset}, {address});"),
                false => format!("tw::store_apart<{count}, {apart}>({address}, {name}, {offset});"),
            });
        }
        Ok(())
    }

    /// Moves one scalar between registers and memory.
    fn move_one(&mut self, regs: &Place, memory: &Place, load: bool) {
        let line = match load {
            true => regs.write(&memory.read().text, &mut self.needs),
            false => memory.write(&regs.read().text, &mut self.needs),
        };
        self.out.line(line);
    }

    /// Moves scalars between registers and memory, in pieces of at most 16 bytes.
    pub(crate) fn move_elements(&mut self, regs: &Place, memory: &Place, scalars: u32, load: bool) {
        let bits = regs.scalar.bits();
        // Parts of bytes go one by one.
        if !(scalars * bits).is_multiple_of(8) {
            for at in 0..scalars {
                self.move_one(&regs.plus(at), &memory.plus(at), load);
            }
            return;
        }
        if is_run(memory) {
            self.needs.piece(Piece::Runs);
            let bytes = scalars * bits / 8;
            let (memory, name, at) = (memory.address(), &regs.name, &regs.offset.text);
            self.out.line(match load {
                true => format!("tw::load_run<{bytes}>({name}, {at}, {memory});"),
                false => format!("tw::store_run<{bytes}>({memory}, {name}, {at});"),
            });
            return;
        }
        for (at, bytes) in split(scalars, bits) {
            let (r, m) = (regs.plus(at), memory.plus(at));
            // One element needs no vector.
            if u32::from(bytes) * 8 == bits {
                self.move_one(&r, &m, load);
                continue;
            }
            self.needs.piece(Piece::Memory);
            self.out.line(match load {
                true => format!(
                    "tw::load<{bytes}>({}, {}, {});",
                    r.name,
                    r.offset.text,
                    m.address()
                ),
                false => format!(
                    "tw::store<{bytes}>({}, {}, {});",
                    m.address(),
                    r.name,
                    r.offset.text
                ),
            });
        }
    }

    fn cp_async(&mut self, op: &MicroOp, span: Span) -> Emit<()> {
        let [source] = op.sources.as_slice() else {
            return unsupported(span, format!("`{}` takes one source", op.inst));
        };
        let (source, dest) = (self.access(source, span)?, self.access(&op.dest, span)?);
        let (bytes, scalars) = self.pieces(op);
        let Some(bytes) = bytes.filter(|b| matches!(b, 4 | 8 | 16)) else {
            return unsupported(span, format!("`cp.async` of {scalars} elements"));
        };
        self.needs.piece(Piece::Async);
        let (to, from) = (dest.in_shared(), source.address());
        let pred = op.pred.as_ref().map(|p| self.scalar(p)).transpose()?;
        let line = match (pred, self.when.clone(), &op.otherwise) {
            (None, None, _) => format!("tw::cp_async<{bytes}>({to}, {from});"),
            (None, Some(when), _) => format!("tw::cp_async_if<{bytes}>({when}, {to}, {from});"),
            (Some(pred), None, None) => format!("tw::cp_async_if<{bytes}>({pred}, {to}, {from});"),
            (Some(pred), Some(when), None) => {
                let both = format!("{} && {}", bracketed(&when), bracketed(&pred));
                format!("tw::cp_async_if<{bytes}>({both}, {to}, {from});")
            }
            (Some(pred), None, Some(value)) if is_zero(value) => {
                format!("tw::cp_async_or_zero<{bytes}>({to}, {from}, {pred});")
            }
            (Some(pred), Some(when), Some(value)) if is_zero(value) => {
                format!("tw::cp_async_or_zero_if<{bytes}>({when}, {to}, {from}, {pred});")
            }
            (Some(pred), _, Some(value)) => {
                self.needs.piece(Piece::Memory);
                let fill = self.splat(value, dest.scalar, bytes)?;
                self.out
                    .line(format!("if ({pred}) tw::cp_async<{bytes}>({to}, {from});"));
                format!("else tw::drop<{bytes}>({}, {fill});", dest.address())
            }
        };
        self.out.line(line);
        Ok(())
    }
}

/// Whether the registers of a load, so many elements each, get their elements in order: by one point of its
/// axes after the other, always and from the first place on.
fn rows_in_turn(op: &MicroOp, elements: u32) -> bool {
    let [at] = &op.dest.at[..] else {
        return false;
    };
    if op.pred.is_some() || op.turns || !op.apart.is_multiple_of(elements) {
        return false;
    }
    let mut analyzer = Analyzer::new();
    let mut slots = Vec::new();
    for mut point in 0..op.count() {
        let mut values = Vec::new();
        for (var, extent) in op.axes.iter().rev() {
            values.push((*var, point % extent));
            point /= extent;
        }
        let slot = at.rewrite(&mut |node| {
            let var = node.as_var()?;
            let (_, value) = values.iter().find(|(v, _)| *v == var)?;
            Some(Expr::int((*value).into(), node.dtype()))
        });
        let Some(slot) = analyzer.simplify(&slot).as_int() else {
            return false;
        };
        slots.push(slot);
    }
    let each = i128::from(elements);
    slots.chunks(elements as usize).all(|rows| {
        let in_order = rows
            .iter()
            .zip(rows[0]..)
            .all(|(slot, wanted)| *slot == wanted);
        rows.len() == elements as usize && rows[0] % each == 0 && in_order
    })
}

/// Whether the instruction can be guarded by a predicate instead of a branch.
pub(crate) fn takes_predicate(op: &MicroOp) -> bool {
    match op.inst {
        Inst::LdMatrix { .. } => true,
        Inst::CpAsync => op.otherwise.as_ref().is_none_or(is_zero),
        _ => false,
    }
}

/// Whether a value is the number whose bits are all zero.
pub(crate) fn is_zero(value: &Expr) -> bool {
    value.is_int(0) || value.as_float().is_some_and(|v| v.to_bits() == 0)
}

/// Offsets in scalars and sizes in bytes of the machine moves of some scalars in a row. What
/// lies in one access is aligned to the largest power of two in its size.
fn split(scalars: u32, bits: u32) -> Vec<(u32, u8)> {
    let bytes = scalars * bits / 8;
    let piece = (bytes & bytes.wrapping_neg()).clamp(1, 16);
    (0..bytes / piece)
        .map(|i| (i * piece * 8 / bits, piece as u8))
        .collect()
}

/// Whether elements are moved as runs of bits: no power of two of bytes holds whole ones.
fn is_run(place: &Place) -> bool {
    !16u32.is_multiple_of(place.scalar.bits()) && place.scalar.bits() < 8
}

fn bracketed(cond: &str) -> String {
    let simple = cond.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match simple {
        true => cond.to_string(),
        false => format!("({cond})"),
    }
}
