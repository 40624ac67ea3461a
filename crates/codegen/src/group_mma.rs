//! Products of warp groups: descriptors of tiles, and registers that stay where they are.

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Access, BinOp, Buffer, Expr, ExprKind, Kernel, LayoutAttr, Major, MicroOp, MmaInst, Scope,
    Span, WARP_GROUP,
};
use tilewright_layout::descriptor::MatrixDescriptor;

use crate::device::{GroupMma, Piece};
use crate::kernel::Emitter;
use crate::place::Kind;
use crate::{Emit, unsupported};

/// Bits in which descriptors count addresses. Source: PTX ISA, matrix descriptor.
const DESCRIPTOR_UNIT: u32 = 128;

/// The register arrays that products of warp groups read and add to.
pub(crate) fn registers_of(kernel: &Kernel, scope: impl Fn(Buffer) -> Scope) -> Vec<Buffer> {
    let mut found = Vec::new();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let Some(op) = stmt.as_group_product() {
            for end in op.sources.iter().chain([&op.dest]) {
                let buffer = end.region.buffer;
                if scope(buffer) != Scope::Shared && !found.contains(&buffer) {
                    found.push(buffer);
                }
            }
        }
    });
    found
}

impl Emitter<'_> {
    /// The number of the warp group, read once. Every tile of a product starts where it says.
    pub(crate) fn warp_group_number(&mut self) {
        self.needs.piece(Piece::Wgmma);
        let name = self.names.take("warp_group");
        let thread = self.linear_thread();
        self.out.line(format!(
            "const int {name} = tw::warp_value({thread} / {WARP_GROUP});"
        ));
        self.plan.warp_group = Some(name);
    }

    /// The name of the warp group's number, where this is it.
    pub(crate) fn as_warp_group(&self, value: &Expr) -> Option<String> {
        let ExprKind::Binary(BinOp::FloorDiv, thread, threads) = value.kind() else {
            return None;
        };
        let [_, y, z] = self.threads;
        let whole = thread.as_var() == self.plan.thread_vars.map(|[x, ..]| x) && y * z == 1;
        let is_it = whole && threads.is_int(WARP_GROUP.into());
        self.plan.warp_group.clone().filter(|_| is_it)
    }

    pub(crate) fn group_mma(
        &mut self,
        op: &MicroOp,
        (mma, fresh): (MmaInst, bool),
        majors: [Major; 2],
        span: Span,
    ) -> Emit<()> {
        let ([a, b], None) = (op.sources.as_slice(), &op.pred) else {
            return unsupported(span, format!("`{mma}` takes two sources and no condition"));
        };
        let in_registers = self.func.buffers[a.region.buffer].scope != Scope::Shared;
        let wrapper = GroupMma {
            mma,
            a: (!in_registers).then_some(majors[0]),
            b: majors[1],
            fresh,
        };
        let left = match in_registers {
            true => self.access(a, span)?.words(),
            false => self.tile(a, majors[0], span)?,
        };
        let right = self.tile(b, majors[1], span)?;
        let c = self.access(&op.dest, span)?;
        self.needs.group_mma(wrapper);
        let step = match op.axes.first().filter(|_| fresh) {
            Some((axis, _)) => {
                let step = self.settled(&self.func.var_expr(*axis));
                format!(", {}", self.expr(&step, 0)?.text)
            }
            None => String::new(),
        };
        self.out.line(format!(
            "tw::{}({}, {left}, {right}{step});",
            wrapper.name(),
            c.words()
        ));
        Ok(())
    }

    /// The descriptor of a tile of shared memory.
    fn tile(&mut self, access: &Access, major: Major, span: Span) -> Emit<String> {
        let data = &self.func.buffers[access.region.buffer];
        let shape = data.const_shape().unwrap_or_default();
        let bits = data.dtype.bits().into();
        let described = match &data.layout {
            Some(LayoutAttr::Placed(place)) => MatrixDescriptor::of(place, &shape, bits),
            _ => None,
        };
        let Some(described) = described else {
            return unsupported(
                span,
                format!(
                    "a product of a warp group reads `{}`, which does not lie in panels",
                    data.name
                ),
            );
        };
        let [high, low] = described.words(major);
        let place = self.access(access, span)?;
        let tile = |place: &str| format!("tw::tile({high:#x}, {low:#x}, {place})");
        // What the address counts in is added by itself: of a sum of elements the compiler does not know
        // that each summand can be divided, and works the shift out for every step.
        let unit = DESCRIPTOR_UNIT / place.scalar.bits();
        let Some((own, known)) = place.known.clone() else {
            return Ok(tile(&place.in_shared()));
        };
        if !self.analyzer.divides(unit.into(), &known).is_yes() {
            return Ok(tile(&place.in_shared()));
        }
        let units = self.analyzer.simplify(&known.floor_div(unit));
        let units = self.expr(&units, 0)?.text;
        Ok(tile(&match units.as_str() {
            "0" => format!("{}, {}", place.name, own.text),
            units => format!("{}, {}, {units}", place.name, own.text),
        }))
    }

    pub(crate) fn group_mma_fence(&mut self) {
        self.needs.piece(Piece::Wgmma);
        self.in_place();
        self.out.line("tw::wgmma_fence();");
    }

    pub(crate) fn group_mma_wait(&mut self, at_most: u32) {
        self.needs.piece(Piece::Wgmma);
        self.out.line(format!("tw::wgmma_wait<{at_most}>();"));
        self.in_place();
    }

    /// Names the registers of products, so that nothing that the compiler does with them crosses
    /// this point.
    fn in_place(&mut self) {
        for buffer in self.plan.group_registers.clone() {
            let Some(storage) = self.storage.get(&buffer) else {
                continue;
            };
            let line = match storage.kind {
                Kind::Array => format!("tw::in_place({});", storage.name),
                Kind::Regs => format!("tw::in_place({}.words);", storage.name),
                Kind::Memory | Kind::Variable | Kind::Numbered => continue,
            };
            self.out.line(line);
        }
    }
}
