//! Statements and loops.

use tilewright_ir::{
    Axis, Block, Buffer, BufferOrigin, DeviceOp, Expr, ExprKind, Loop, LoopKind, Scope, Span, Stmt,
    StmtKind, Var, WARP_GROUP,
};

use crate::ctype::{ctype, is_packed};
use crate::device::Piece;
use crate::expr::is_row;
use crate::kernel::Emitter;
use crate::micro::takes_predicate;
use crate::place::{Kind, Place};
use crate::{Emit, unsupported};

impl Emitter<'_> {
    /// The statements of a block, in a scope of names and facts of their own.
    pub(crate) fn block(&mut self, block: &Block) -> Emit<()> {
        self.analyzer.push();
        self.names.open();
        let mut sums_kept = false;
        for (at, stmt) in block.iter().enumerate() {
            if self.uses.is_dead(stmt) {
                self.analyzer.after(stmt);
                continue;
            }
            self.held = is_held(block, at);
            let elements = self.elements_of_sums(stmt).filter(|_| !self.sums_settled);
            if elements.is_some() {
                self.settle_sums();
                self.sums_settled = true;
            }
            self.keep_sums(stmt, &mut sums_kept);
            self.wait_for_late_sums(stmt);
            let around = self.unread_around(stmt);
            self.stmt(stmt)?;
            self.unread.extend(around);
            if let Some(written) = elements {
                self.sums_settled = false;
                if written {
                    self.settle_sums();
                }
            }
            self.analyzer.after(stmt);
        }
        for stmt in block {
            if let StmtKind::Alloc(buffer) = stmt.kind {
                self.storage.remove(&buffer);
            }
        }
        self.names.close();
        self.analyzer.pop();
        Ok(())
    }

    fn braced(&mut self, head: &str, block: &Block) -> Emit<()> {
        self.out.line(format!("{head} {{"));
        self.out.indent();
        self.block(block)?;
        self.out.dedent();
        self.out.line("}");
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Emit<()> {
        if !matches!(stmt.kind, StmtKind::Alloc(_)) {
            self.out.quote(stmt.span);
        }
        match &stmt.kind {
            StmtKind::Let { var, value } => self.bind(*var, value, stmt.span),
            StmtKind::Store {
                buffer,
                indices,
                value,
            } => self.store(*buffer, indices, value, stmt.span),
            StmtKind::Alloc(buffer) => self.alloc(*buffer),
            StmtKind::For(l) => self.for_loop(l, stmt.span),
            StmtKind::While { cond, body } => {
                let head = format!("while ({})", self.scalar(cond)?);
                self.analyzer.push();
                self.analyzer.assume(cond);
                self.braced(&head, body)?;
                self.analyzer.pop();
                Ok(())
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => self.branch(cond, then, otherwise),
            StmtKind::WarpGroup { groups, body } => {
                let number = match &self.plan.warp_group {
                    Some(name) => name.clone(),
                    None => format!("{} / {WARP_GROUP}", self.linear_thread()),
                };
                let any: Vec<String> = groups.iter().map(|g| format!("{number} == {g}")).collect();
                self.braced(&format!("if ({})", any.join(" || ")), body)
            }
            StmtKind::Break => {
                self.out.line("break;");
                Ok(())
            }
            StmtKind::Continue => {
                self.out.line("continue;");
                Ok(())
            }
            StmtKind::Assert { cond, message } => {
                let cond = self.scalar(cond)?;
                let line = self.assertion(&cond, message);
                self.out.line(line);
                Ok(())
            }
            StmtKind::Assume(cond) => {
                let cond = self.scalar(cond)?;
                self.out.line(format!("__builtin_assume({cond});"));
                Ok(())
            }
            StmtKind::Tile(_) => unsupported(stmt.span, "a tile operation in device IR"),
            StmtKind::Thread(op) => self.thread_op(op, stmt.span),
            StmtKind::Micro(op) => self.micro_op(op, stmt.span),
            StmtKind::Device(op) => self.device_op(op, stmt.span),
        }
    }

    fn branch(&mut self, cond: &Expr, then: &Block, otherwise: &Block) -> Emit<()> {
        let text = self.scalar(cond)?;
        let predicated = |s: &Stmt| matches!(&s.kind, StmtKind::Micro(op) if takes_predicate(op));
        if self.has_predicates() && otherwise.is_empty() && then.iter().all(predicated) {
            self.when = Some(text);
            self.analyzer.push();
            self.analyzer.assume(cond);
            let result = self.block(then);
            self.analyzer.pop();
            self.when = None;
            return result;
        }
        self.out.line(format!("if ({text}) {{"));
        self.out.indent();
        let before = self.unread.clone();
        self.analyzer.push();
        self.analyzer.assume(cond);
        self.block(then)?;
        self.analyzer.pop();
        let behind_then = std::mem::replace(&mut self.unread, before);
        self.out.dedent();
        if !otherwise.is_empty() {
            self.out.line("} else {");
            self.out.indent();
            self.analyzer.push();
            self.analyzer.refute(cond);
            self.block(otherwise)?;
            self.analyzer.pop();
            self.out.dedent();
        }
        self.unread.extend(behind_then);
        self.out.line("}");
        Ok(())
    }

    /// Declares a variable and gives its name.
    pub(crate) fn declare(&mut self, var: Var) -> String {
        let name = self.names.take(&self.func.vars[var].name);
        self.var_names.insert(var, name.clone());
        name
    }

    fn bind(&mut self, var: Var, value: &Expr, span: Span) -> Emit<()> {
        let dtype = self.func.vars[var].dtype;
        self.need_type(dtype.scalar);
        if self.is_data(value) {
            self.data_vars.insert(var);
        }
        if let Some(name) = self.as_warp_group(value) {
            self.var_names.insert(var, name);
            return Ok(());
        }
        if dtype.lanes == 1 {
            let value = self.scalar(value)?;
            let name = self.declare(var);
            self.out
                .line(format!("const {} {name} = {value};", ctype(dtype.scalar)));
            return Ok(());
        }
        let value = self.settled(value);
        let name = self.vector(dtype.scalar, dtype.lanes.into(), &value, span)?;
        self.var_names.insert(var, name);
        Ok(())
    }

    /// A vector value in registers of its own; gives their name.
    fn vector(
        &mut self,
        scalar: tilewright_ir::Scalar,
        lanes: u32,
        value: &Expr,
        span: Span,
    ) -> Emit<String> {
        self.need_type(scalar);
        self.needs.piece(Piece::Memory);
        let kind = match is_packed(scalar) {
            true => Kind::Regs,
            false => Kind::Array,
        };
        let name = self.names.take("vector");
        self.out.line(registers(&name, scalar, lanes));
        if let ExprKind::Load { buffer, indices } = value.kind()
            && is_row(indices)
            && self.func.buffers[*buffer].dtype.scalar == scalar
        {
            let source = self.place(*buffer, indices, None, 0, span)?;
            if !source.is_register() {
                let target = Place::registers(scalar, name.clone());
                self.move_elements(&target, &source, lanes, true);
                return Ok(name);
            }
        }
        let single = value.dtype().lanes == 1;
        for lane in 0..lanes {
            let code = self.expr(value, if single { 0 } else { lane as usize })?;
            let code = self.convert(code, value.dtype().scalar, scalar);
            self.out.line(match kind {
                Kind::Regs => format!("{name}.set({lane}, {});", code.text),
                _ => format!("{name}[{lane}] = {};", code.text),
            });
        }
        Ok(name)
    }

    fn store(&mut self, buffer: Buffer, indices: &[Expr], value: &Expr, span: Span) -> Emit<()> {
        let data = &self.func.buffers[buffer];
        let scalar = data.dtype.scalar;
        let own = u32::from(data.dtype.lanes);
        let rows = indices.iter().map(|i| u32::from(i.dtype().lanes));
        let outer = rows.max().unwrap_or(1);
        let total = own * outer;
        let value = self.settled(value);
        let value_lanes = u32::from(value.dtype().lanes);
        if value_lanes != total && value_lanes != 1 {
            return unsupported(
                span,
                format!("{value_lanes} values stored to {total} elements"),
            );
        }
        if total == 1 {
            let code = self.expr(&value, 0)?;
            let code = self.convert(code, value.dtype().scalar, scalar);
            let place = self.place(buffer, indices, None, 0, span)?;
            let line = place.write(&code.text, &mut self.needs);
            self.out.line(line);
            return Ok(());
        }
        let row = is_row(indices) || outer == 1;
        let first = self.place(buffer, indices, None, 0, span)?;
        if row && first.kind == Kind::Memory {
            self.out.line("{");
            self.out.indent();
            self.names.open();
            let name = self.vector(scalar, total, &value, span)?;
            let source = Place::registers(scalar, name);
            self.move_elements(&source, &first, total, false);
            self.names.close();
            self.out.dedent();
            self.out.line("}");
            return Ok(());
        }
        for lane in 0..total {
            let code = self.expr(&value, if value_lanes == 1 { 0 } else { lane as usize })?;
            let code = self.convert(code, value.dtype().scalar, scalar);
            let place = match row {
                true => first.plus(lane),
                false => {
                    let place = self.place(buffer, indices, None, (lane / own) as usize, span)?;
                    place.plus(lane % own)
                }
            };
            let line = place.write(&code.text, &mut self.needs);
            self.out.line(line);
        }
        Ok(())
    }

    fn alloc(&mut self, buffer: Buffer) -> Emit<()> {
        let data = &self.func.buffers[buffer];
        if !self.uses.buffers.contains_key(&buffer) {
            return Ok(());
        }
        match data.scope {
            // Declared before the body: they live as long as the kernel.
            Scope::Shared | Scope::Barrier if !matches!(data.origin, BufferOrigin::View(_)) => {
                return Ok(());
            }
            _ => {}
        }
        match &data.origin {
            BufferOrigin::View(base) => return self.view(buffer, *base),
            BufferOrigin::Pointer(address) => return self.pointer(buffer, address),
            _ => {}
        }
        let scalar = data.dtype.scalar;
        let name = self.names.take(&data.name);
        let shape = self.const_shape(data)?;
        let count = shape.iter().product::<i64>().max(1) * i64::from(data.dtype.lanes);
        let storage = self.describe(buffer, name.clone())?;
        self.need_type(scalar);
        if let Some(sum) = self.number_of(buffer) {
            let last = sum.first + sum.count - 1;
            self.out.line(format!(
                "constexpr int {name} = {}; // a{} to a{last}",
                sum.first, sum.first
            ));
        } else if storage.kind == Kind::Variable {
            self.out.line(format!("{} {name};", ctype(scalar)));
        } else {
            self.out.line(registers(&name, scalar, count as u32));
        }
        self.storage.insert(buffer, storage);
        Ok(())
    }

    /// A buffer at an address that the kernel computes.
    pub(crate) fn pointer(&mut self, buffer: Buffer, address: &Expr) -> Emit<()> {
        let address = self.scalar(address)?;
        let name = self.names.take(&self.func.buffers[buffer].name);
        let written = self.uses.buffers.get(&buffer) == Some(&true);
        let constant = if written { "" } else { "const " };
        let element = self.element_type(buffer);
        self.out.line(format!(
            "{constant}{element}* {name} = ({constant}{element}*){address};"
        ));
        let storage = self.describe(buffer, name)?;
        self.storage.insert(buffer, storage);
        Ok(())
    }

    /// Another name for a buffer's storage.
    pub(crate) fn view(&mut self, buffer: Buffer, base: Buffer) -> Emit<()> {
        let data = &self.func.buffers[buffer];
        let Some(root) = self.storage.get(&base).cloned() else {
            return unsupported(data.span, format!("`{}` is a view of nothing", data.name));
        };
        if root.kind != Kind::Memory {
            if root.scalar != data.dtype.scalar {
                return unsupported(
                    data.span,
                    format!("`{}` sees registers as another type", data.name),
                );
            }
            let storage = self.describe(buffer, root.name)?;
            self.storage.insert(buffer, storage);
            return Ok(());
        }
        let name = self.names.take(&data.name);
        let written = self.uses.buffers.get(&buffer) == Some(&true);
        let constant = if written || data.scope != Scope::Global {
            ""
        } else {
            "const "
        };
        let element = self.element_type(buffer);
        self.out.line(format!(
            "{constant}{element}* const {name} = ({constant}{element}*){};",
            root.name
        ));
        let storage = self.describe(buffer, name)?;
        self.storage.insert(buffer, storage);
        Ok(())
    }

    /// The C type that pointers to a buffer's memory point to.
    pub(crate) fn element_type(&mut self, buffer: Buffer) -> &'static str {
        let scalar = self.func.buffers[buffer].dtype.scalar;
        self.need_type(scalar);
        match scalar.bits() {
            4 | 6 => "unsigned char",
            _ => ctype(scalar),
        }
    }

    fn for_loop(&mut self, l: &Loop, span: Span) -> Emit<()> {
        let unroll = match l.kind {
            LoopKind::Serial | LoopKind::Pipelined(_) => self.unroll_at_most(l),
            LoopKind::Unroll { factor } => Some(factor),
            LoopKind::Vectorized => Some(None),
            LoopKind::Parallel { .. } | LoopKind::Persistent { .. } => {
                return unsupported(span, "a loop over the block's tiles in device IR");
            }
        };
        let [axis] = l.axes.as_slice() else {
            return unsupported(span, "a loop of several axes in device IR");
        };
        let runs = matches!(l.kind, LoopKind::Serial | LoopKind::Pipelined(_));
        if unroll != Some(None) && self.is_told_of_loops() && self.certainly_runs(axis) {
            let (start, stop) = (self.scalar(&axis.start)?, self.scalar(&axis.stop)?);
            let line = format!("if ({start} >= {stop}) __builtin_unreachable();");
            self.out.line(line);
        }
        self.loops += u32::from(runs);
        self.analyzer.enter_loop(self.func, l);
        self.names.open();
        let result = self.counted(axis, unroll, &l.body);
        self.names.close();
        self.loops -= u32::from(runs);
        self.analyzer.pop();
        result
    }

    /// Whether a loop that counts up, of a length that is not written in it, has an iteration in all calls.
    fn certainly_runs(&mut self, axis: &Axis) -> bool {
        axis.const_trip_count().is_none()
            && axis.step.as_int().is_some_and(|step| step > 0)
            && self.analyzer.prove_lt(&axis.start, &axis.stop).is_yes()
    }

    fn counted(&mut self, axis: &Axis, unroll: Option<Option<u32>>, body: &Block) -> Emit<()> {
        let Axis {
            var,
            start,
            stop,
            step,
        } = axis;
        // A single iteration is the body itself.
        if axis.const_trip_count() == Some(1) && !leaves_loop(body) {
            let dtype = self.func.vars[*var].dtype;
            if let Some(first) = start.as_int() {
                self.settled.insert(*var, Expr::int(first, dtype));
                self.var_names.insert(*var, first.to_string());
                let result = self.scoped(body);
                self.settled.remove(var);
                return result;
            }
        }
        let scalar = self.func.vars[*var].dtype.scalar;
        let (start, stop) = (self.scalar(start)?, self.scalar(stop)?);
        let (backward, step) = match step.as_int() {
            Some(1) => (false, None),
            Some(s) if s < 0 => (true, Some(s.to_string())),
            _ => (false, Some(self.scalar(step)?)),
        };
        let name = self.declare(*var);
        let next = match step {
            None => format!("++{name}"),
            Some(step) => format!("{name} += {step}"),
        };
        match unroll {
            Some(Some(factor)) => self.out.directive(format!("#pragma unroll {factor}")),
            Some(None) => {
                self.unrolled.insert(*var);
                self.out.directive("#pragma unroll");
            }
            None => {}
        }
        let compare = if backward { ">" } else { "<" };
        let head = format!(
            "for ({} {name} = {start}; {name} {compare} {stop}; {next})",
            ctype(scalar)
        );
        let result = self.braced(&head, body);
        self.unrolled.remove(var);
        result
    }

    /// A body in braces of its own, where it declares something.
    fn scoped(&mut self, body: &Block) -> Emit<()> {
        let declares = body.iter().any(|s| {
            !self.uses.is_dead(s)
                && matches!(
                    s.kind,
                    StmtKind::Let { .. } | StmtKind::Thread(_) | StmtKind::Alloc(_)
                )
        });
        if !declares {
            return self.block(body);
        }
        self.out.line("{");
        self.out.indent();
        self.block(body)?;
        self.out.dedent();
        self.out.line("}");
        Ok(())
    }

    /// How far the compiler may unroll a serial loop: not at all where its body is large already,
    /// else as it likes, within the dialect's limit.
    fn unroll_at_most(&self, l: &Loop) -> Option<Option<u32>> {
        let axis = l.axes.first()?;
        let mut large = false;
        tilewright_ir::visit::walk_stmts(&l.body, &mut |s| {
            large |= matches!(
                s.kind,
                StmtKind::Micro(_) | StmtKind::Device(_) | StmtKind::Thread(_)
            );
        });
        let trips = axis.const_trip_count();
        let limit = self.unroll_limit();
        let limit = limit.filter(|most| trips.is_some_and(|n| n > u64::from(*most)));
        match large {
            true => Some(Some(1)),
            false => limit.map(Some),
        }
    }

    /// The number of the thread in its block.
    pub(crate) fn linear_thread(&self) -> String {
        let [x, y, z] = self.threads;
        let mut text = "(int)threadIdx.x".to_string();
        if y > 1 || z > 1 {
            text += &format!(" + {x} * (int)threadIdx.y");
        }
        if z > 1 {
            text += &format!(" + {} * (int)threadIdx.z", x * y);
        }
        match y > 1 || z > 1 {
            true => format!("({text})"),
            false => text,
        }
    }
}

/// Whether the body has a `break` or `continue` of the loop around it.
fn leaves_loop(body: &Block) -> bool {
    body.iter().any(|s| match &s.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::For(_) | StmtKind::While { .. } => false,
        _ => tilewright_ir::visit::child_blocks(s)
            .into_iter()
            .any(leaves_loop),
    })
}

/// The declaration of registers.
pub(crate) fn registers(name: &str, scalar: tilewright_ir::Scalar, count: u32) -> String {
    match is_packed(scalar) {
        true => format!("tw::Regs<{}, {count}> {name};", ctype(scalar)),
        false => format!("{} {name}[{count}];", ctype(scalar)),
    }
}

/// A C string literal.
pub(crate) fn c_string(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' => out += "\\\"",
            b'\\' => out += "\\\\",
            b'\n' => out += "\\n",
            b'?' => out += "\\?",
            0x20..=0x7e => out.push(byte as char),
            _ => out += &format!("\\{byte:03o}"),
        }
    }
    out.push('"');
    out
}

/// Whether what the statement at this place multiplies is held there: alone between the fences of a woven
/// cluster; as a cluster behind a loop, where clang would put each sum into other registers than it came in
/// and then find no room for operands, which take eight in a row.
fn is_held(block: &Block, at: usize) -> bool {
    let single = matches!(&block[at].kind, StmtKind::Micro(op) if op.count() == 1);
    let is_loop = |s: &Stmt| matches!(&s.kind, StmtKind::For(l) if l.kind == LoopKind::Serial);
    match block.get(at + 1).map(|next| &next.kind) {
        Some(StmtKind::Device(DeviceOp::SchedBarrier(0))) => single,
        Some(StmtKind::Device(DeviceOp::SetPrio(_) | DeviceOp::Barrier(_))) => {
            block[..at].iter().any(is_loop)
        }
        _ => false,
    }
}
