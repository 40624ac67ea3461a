//! The uses of fragments in a kernel: what touches what, at which indices.

use std::sync::Arc;

use tilewright_ir::operand::Operand;
use tilewright_ir::visit::{child_blocks, child_blocks_mut};
use tilewright_ir::{
    AtomicSource, Block, Buffer, BufferData, Expr, ExprKind, Func, GemmOp, Kernel, LayoutAttr,
    Loop, LoopKind, ReduceOp, Region, Scope, Span, Stmt, StmtKind, ThreadOp, TileOp, Var,
};
use tilewright_layout::{Form, Fragment, Layout, from_expr};

use crate::schedules::{is_long, parts_asked};

/// Something that touches fragments, or a parallel loop that touches none.
#[derive(Debug)]
pub struct Use {
    pub kind: UseKind,
    pub span: Span,
    /// Threads that take part: the block's, or those of the warp groups around it.
    pub threads: i64,
    /// Parts along M and N that the order of the loop around takes products and copies into.
    pub parts: [u32; 2],
    /// Whether tiles are brought ahead in the loop around, in an order that is still to be chosen.
    pub open: bool,
}

/// What stands around a statement.
#[derive(Clone, Copy)]
struct Around {
    threads: i64,
    parts: [u32; 2],
    open: bool,
}

#[derive(Debug)]
pub enum UseKind {
    /// Points of a box, each touching elements. Parallel loops, and copies as loops.
    Points {
        shape: Vec<i64>,
        accesses: Vec<ElementUse>,
        /// Elements that one thread may take in a row for 16-byte memory accesses.
        vector: i64,
        /// How rows of the memory that is touched run, if any is.
        memory: Option<Run>,
        /// Whether it is a parallel loop, whose layout is written into the IR.
        is_loop: bool,
        /// The layout that an earlier pass gave the loop.
        given: Option<Arc<Fragment>>,
    },
    /// A parallel loop whose extents are known at run time only; it touches no fragment.
    DynamicLoop,
    Gemm(Box<GemmOp>),
    Reduce(ReduceOp),
    /// Something that works with any layout: fills, scans, transposes.
    Any(Vec<Buffer>),
    /// A read or write outside of parallel loops.
    Single(Buffer),
}

/// How neighbours in memory lie among the points that touch them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Run {
    /// Beside each other.
    Rows,
    /// Below each other.
    Columns,
}

#[derive(Clone, Debug)]
pub struct ElementUse {
    pub buffer: Buffer,
    pub write: bool,
    /// From the point to the element; `None` when that is no map of digits.
    pub map: Option<Layout>,
    /// Whether each point touches the element of its own index.
    pub own: bool,
    pub span: Span,
}

/// All uses, in program order.
pub fn collect(func: &Func, kernel: &Kernel) -> Vec<Use> {
    let mut found = Vec::new();
    let walk = UseFinder { func };
    let around = Around {
        threads: kernel.num_threads() as i64,
        parts: [1, 1],
        open: false,
    };
    walk.block(&kernel.body, around, &mut found);
    found
}

struct UseFinder<'f> {
    func: &'f Func,
}

impl UseFinder<'_> {
    fn block(&self, block: &Block, around: Around, found: &mut Vec<Use>) {
        for stmt in block {
            self.stmt(stmt, around, found);
        }
    }

    fn stmt(&self, stmt: &Stmt, mut around: Around, found: &mut Vec<Use>) {
        let mut push = |kind| {
            found.push(Use {
                kind,
                span: stmt.span,
                threads: around.threads,
                parts: around.parts,
                open: around.open,
            });
        };
        match &stmt.kind {
            StmtKind::For(l) if matches!(l.kind, LoopKind::Parallel { .. }) => {
                return push(self.parallel(l));
            }
            StmtKind::Tile(op) => match op {
                TileOp::Copy(c) => self.copy(&c.src, &c.dst, stmt.span, &mut push),
                TileOp::Atomic {
                    dst,
                    value: AtomicSource::Region(src),
                    ..
                } => self.copy(src, dst, stmt.span, &mut push),
                TileOp::Gemm(g) => push(UseKind::Gemm(Box::new(g.clone()))),
                TileOp::Reduce(r) => push(UseKind::Reduce(r.clone())),
                _ => {
                    let mut buffers = Vec::new();
                    op.operands(&mut |operand| {
                        if let Operand::Region { region, .. } = operand {
                            buffers.push(region.buffer);
                        }
                    });
                    push(UseKind::Any(buffers));
                }
            },
            _ => {}
        }
        tilewright_ir::visit::stmt_exprs(stmt, &mut |e| {
            e.walk(&mut |node| {
                if let ExprKind::Load { buffer, .. } = node.kind()
                    && self.is_fragment(*buffer)
                {
                    push(UseKind::Single(*buffer));
                }
            });
        });
        if let StmtKind::Store { buffer, .. } | StmtKind::Thread(ThreadOp::AtomicRmw { buffer, .. }) =
            &stmt.kind
            && self.is_fragment(*buffer)
        {
            push(UseKind::Single(*buffer));
        }
        match &stmt.kind {
            StmtKind::WarpGroup { groups, .. } => around.threads = 128 * groups.len() as i64,
            StmtKind::For(l) => {
                if let LoopKind::Pipelined(spec) = &l.kind {
                    let index = &self.func.vars[l.axes[0].var].name;
                    let asked = spec.schedule.as_deref();
                    around.parts = asked.map_or([1, 1], |asked| parts_asked(asked, index));
                    around.open = spec.stages > 1 && asked.is_none() && is_long(l);
                }
            }
            _ => {}
        }
        for child in child_blocks(stmt) {
            self.block(child, around, found);
        }
    }

    fn is_fragment(&self, buffer: Buffer) -> bool {
        self.func.buffers[buffer].scope == Scope::Fragment
    }

    fn parallel(&self, l: &Loop) -> UseKind {
        let shape: Option<Vec<i64>> = l
            .axes
            .iter()
            .map(|a| i64::try_from(a.const_trip_count()?).ok())
            .collect();
        let simple = l.axes.iter().all(|a| a.start.is_int(0) && a.step.is_int(1));
        let Some(shape) = shape.filter(|s| simple && s.iter().all(|&e| e > 0)) else {
            return UseKind::DynamicLoop;
        };
        let vars: Vec<Var> = l.axes.iter().map(|a| a.var).collect();
        let mut accesses = Vec::new();
        let mut touched = Touched::default();
        self.points(&l.body, &vars, &shape, &mut accesses, &mut touched);
        let vector = touched.vector(&shape);
        let memory = touched.run();
        let given = match &l.kind {
            LoopKind::Parallel {
                layout: Some(LayoutAttr::Held(given)),
                ..
            } => Some(given.clone()),
            _ => None,
        };
        UseKind::Points {
            shape,
            accesses,
            vector,
            memory,
            is_loop: true,
            given,
        }
    }

    /// The fragment accesses inside a parallel loop, and the elements of memory touched.
    fn points(
        &self,
        block: &Block,
        vars: &[Var],
        shape: &[i64],
        out: &mut Vec<ElementUse>,
        touched: &mut Touched,
    ) {
        let mut touch =
            |buffer: Buffer, indices: &[Expr], write: bool, single: bool, span: Span| {
                let data = &self.func.buffers[buffer];
                match data.scope {
                    Scope::Fragment => {
                        let extents = const_shape(&data.shape);
                        let map = extents.and_then(|e| from_expr::access(vars, indices, shape, &e));
                        let known = out.iter().any(|a: &ElementUse| {
                            a.buffer == buffer && a.write == write && a.map == map && map.is_some()
                        });
                        if !known {
                            out.push(ElementUse {
                                buffer,
                                write,
                                own: map.as_ref().is_some_and(is_identity),
                                map,
                                span,
                            });
                        }
                    }
                    _ => {
                        touched.add(data);
                        // What is updated element by element is best a row of the wave's lanes.
                        if !single || data.dtype.bits() < 32 {
                            touched.run_along(vars, indices);
                        }
                    }
                }
            };
        for stmt in block {
            tilewright_ir::visit::stmt_exprs(stmt, &mut |e| {
                e.walk(&mut |node| {
                    if let ExprKind::Load { buffer, indices } = node.kind() {
                        touch(*buffer, indices, false, false, stmt.span);
                    }
                });
            });
            match &stmt.kind {
                StmtKind::Store {
                    buffer, indices, ..
                } => touch(*buffer, indices, true, false, stmt.span),
                StmtKind::Thread(ThreadOp::AtomicRmw {
                    buffer, indices, ..
                }) => touch(*buffer, indices, true, true, stmt.span),
                _ => {}
            }
        }
        for stmt in block {
            for child in child_blocks(stmt) {
                self.points(child, vars, shape, out, touched);
            }
        }
    }

    /// A copy is a loop over the points of its regions.
    fn copy(&self, src: &Region, dst: &Region, span: Span, push: &mut impl FnMut(UseKind)) {
        let sides = [(src, false), (dst, true)];
        if !sides.iter().any(|(r, _)| self.is_fragment(r.buffer)) {
            return;
        }
        let Some(shape) = sides
            .iter()
            .filter(|(r, _)| self.is_fragment(r.buffer))
            .find_map(|(r, _)| copy_shape(r))
        else {
            return;
        };
        let mut accesses = Vec::new();
        let mut touched = Touched::default();
        for (region, write) in sides {
            let data = &self.func.buffers[region.buffer];
            if self.is_fragment(region.buffer) {
                let map = region_map(region, &shape, &data.shape);
                accesses.push(ElementUse {
                    buffer: region.buffer,
                    write,
                    own: map.as_ref().is_some_and(is_identity),
                    map,
                    span,
                });
            }
            touched.add(data);
        }
        let vector = touched.vector(&shape);
        let in_memory = sides.iter().any(|(r, _)| !self.is_fragment(r.buffer));
        push(UseKind::Points {
            shape,
            accesses,
            vector,
            memory: in_memory.then_some(Run::Rows),
            is_loop: false,
            given: None,
        });
    }
}

/// The points of a copy: the extents of a region that are not one.
pub fn copy_shape(region: &Region) -> Option<Vec<i64>> {
    let mut shape = Vec::new();
    for dim in &region.dims {
        match i64::try_from(dim.extent.as_int()?).ok()? {
            1 => {}
            extent => shape.push(extent),
        }
    }
    if shape.is_empty() {
        shape.push(1);
    }
    Some(shape)
}

/// From the points of a copy to the elements of a region with constant corners.
pub fn region_map(region: &Region, shape: &[i64], extents: &[Expr]) -> Option<Layout> {
    let extents = const_shape(extents)?;
    let mut form = Form::identity(shape);
    let points = std::mem::take(&mut form.outs);
    let mut next = points.into_iter();
    for dim in &region.dims {
        let start = i64::try_from(dim.start.as_int()?).ok()?;
        let mut out = if dim.extent.is_int(1) {
            tilewright_layout::Sum::default()
        } else {
            next.next()?
        };
        out.offset += start;
        form.outs.push(out);
    }
    Layout::new(shape, &extents, form).ok()
}

pub fn const_shape(shape: &[Expr]) -> Option<Vec<i64>> {
    shape
        .iter()
        .map(|e| i64::try_from(e.as_int()?).ok())
        .collect()
}

/// The elements that points touch in memory, as far as it matters for vectors.
#[derive(Debug, Default)]
pub struct Touched {
    /// Bits of the narrowest element of global memory.
    global: Option<i64>,
    /// Bits of the widest element of shared memory.
    shared: Option<i64>,
    /// The largest power of two that divides all rows of global memory.
    rows: Option<i64>,
    /// How rows of memory run, as the first access has it.
    run: Option<Run>,
}

impl Touched {
    pub fn add(&mut self, data: &BufferData) {
        let bits = (data.dtype.bits() as i64).max(8);
        match data.scope {
            Scope::Global => {
                self.global = Some(self.global.map_or(bits, |b| b.min(bits)));
                if let [_, .., row] = &data.shape[..]
                    && let Some(row) = row.as_int().and_then(|e| i64::try_from(e).ok())
                {
                    let power = row & row.wrapping_neg();
                    self.rows = Some(self.rows.map_or(power, |r| r.min(power)));
                }
            }
            Scope::Shared => self.shared = Some(self.shared.map_or(bits, |b| b.max(bits))),
            _ => {}
        }
    }

    /// Notes how the last index of an access follows the points.
    fn run_along(&mut self, vars: &[Var], indices: &[Expr]) {
        let (Some(index), [rest @ .., last]) = (indices.last(), vars) else {
            return;
        };
        let follows = |vars: &[Var]| {
            let mut found = false;
            index.walk(&mut |node| found |= node.as_var().is_some_and(|v| vars.contains(&v)));
            found
        };
        let run = match () {
            () if follows(&[*last]) => Run::Rows,
            () if follows(rest) => Run::Columns,
            () => return,
        };
        self.run.get_or_insert(run);
    }

    /// How rows of memory run, where the points follow them.
    fn run(&self) -> Option<Run> {
        self.run
    }

    /// How many elements in a row make 16 bytes, as far as the last extent and the rows in
    /// memory allow. Global memory is what a loop waits for, so its narrowest element decides
    /// and wider ones take several accesses; in shared memory those would meet in the same
    /// banks, so there the widest does.
    pub fn vector(&self, shape: &[i64]) -> i64 {
        let last = shape.last().copied().unwrap_or(1);
        let bits = self.global.or(self.shared);
        let mut vector = bits.map_or(1, |b| (128 / b).max(1));
        vector = vector.min(self.rows.unwrap_or(vector)).max(1);
        while last % vector != 0 {
            vector /= 2;
        }
        vector.max(1)
    }
}

/// Parallel loops that stand alone in a parallel loop are one loop with more axes.
pub fn merge_nested_parallel(func: &mut Func) {
    for kernel in &mut func.kernels {
        merge_block(&mut kernel.body);
    }
}

fn merge_block(block: &mut Block) {
    for stmt in block {
        if let StmtKind::For(l) = &mut stmt.kind
            && matches!(l.kind, LoopKind::Parallel { .. })
        {
            while let [
                Stmt {
                    kind: StmtKind::For(inner),
                    ..
                },
            ] = &mut l.body[..]
                && matches!(inner.kind, LoopKind::Parallel { .. })
            {
                let inner_axes = std::mem::take(&mut inner.axes);
                let body = std::mem::take(&mut inner.body);
                l.axes.extend(inner_axes);
                l.body = body;
            }
        }
        for child in child_blocks_mut(stmt) {
            merge_block(child);
        }
    }
}

/// Whether each point touches the element of its own index.
fn is_identity(map: &Layout) -> bool {
    map.shape() == map.codomain() && Layout::identity(map.shape()).is_ok_and(|id| id == *map)
}
