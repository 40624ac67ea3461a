//! Random well-formed functions, for property tests.
//!
//! A function is made from a list of choices; each number decides one question, and when the
//! list is used up every question has its simplest answer. Shrinking the list therefore
//! shrinks the function. What comes out satisfies the verifier.
//!
//! Each operation brings its own buffers of fitting shape and type, so that every kind of
//! operation is reached without searching for operands. Most are made after a line of `samples.tw`.

mod device;
mod exprs;
mod layout;
mod samples;
mod thread;
mod tile;

use proptest::prelude::*;

use tilewright_ir::buffer::{BufferData, BufferOrigin, LayoutAttr, Scope};
use tilewright_ir::diag::Span;
use tilewright_ir::dtype::{DType, Scalar};
use tilewright_ir::expr::{Expr, F64};
use tilewright_ir::func::{
    AttrValue, Func, Kernel, KernelAttrs, Level, Param, RasterOrder, Swizzle, VarKind,
};
use tilewright_ir::ids::{Buffer, Var};
use tilewright_ir::prints::{self, PrintFormat, Prints};
use tilewright_ir::stmt::{Axis, Block, Loop, LoopKind, PipelineSpec, Stmt, StmtKind, Turn};

/// Functions of all levels.
pub fn any_func() -> impl Strategy<Value = Func> {
    prop::collection::vec(any::<u32>(), 0..600).prop_map(|choices| func(&choices))
}

/// The function that these choices make.
pub fn func(choices: &[u32]) -> Func {
    let mut g = Gen {
        choices: choices.iter(),
        func: Func::new(""),
        vars: Vec::new(),
        loads: Vec::new(),
        block: Vec::new(),
        depth: 0,
        in_parallel: false,
        in_loop: false,
    };
    g.function();
    g.func
}

/// Names that clash with each other, with words of the text form, or that are no identifiers.
const NAMES: [&str; 16] = [
    "x",
    "i",
    "A",
    "x",
    "for",
    "exp",
    "float16",
    "copy",
    "two words",
    "",
    "é",
    "1st",
    "x.1",
    "true",
    "region",
    "_",
];

struct Gen<'a> {
    choices: std::slice::Iter<'a, u32>,
    func: Func,
    /// Integer variables in scope.
    vars: Vec<Var>,
    /// Buffers in scope that expressions may load from.
    loads: Vec<Buffer>,
    /// The block being filled.
    block: Block,
    depth: usize,
    in_parallel: bool,
    in_loop: bool,
}

impl Gen<'_> {
    /// A number below `n`; zero once the choices are used up.
    fn pick(&mut self, n: usize) -> usize {
        self.choices.next().map_or(0, |c| *c as usize % n.max(1))
    }

    /// True once in `n` times, and never once the choices are used up.
    fn chance(&mut self, n: usize) -> bool {
        self.pick(n) == n - 1
    }

    fn one_of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.pick(items.len())].clone()
    }

    fn optional<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance(3).then(|| make(self))
    }

    fn list<T>(&mut self, max: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.pick(max + 1);
        (0..count).map(|_| make(self)).collect()
    }

    fn name(&mut self) -> String {
        self.one_of(&NAMES).to_string()
    }

    fn small(&mut self) -> u32 {
        self.pick(5) as u32 + 1
    }

    fn text(&mut self) -> String {
        self.one_of(&["", "plain", "say \"hi\"", "a\\b\nc\t", "ключ\u{0}\u{7f}"])
            .to_string()
    }

    fn emit(&mut self, kind: StmtKind) {
        self.block.push(Stmt::new(kind, Span::NONE));
    }

    /// Fills a new block; what it declares is out of scope afterwards.
    fn nested(&mut self, fill: impl FnOnce(&mut Self)) -> Block {
        let (vars, loads) = (self.vars.len(), self.loads.len());
        let outer = std::mem::take(&mut self.block);
        self.depth += 1;
        fill(self);
        self.depth -= 1;
        self.vars.truncate(vars);
        self.loads.truncate(loads);
        std::mem::replace(&mut self.block, outer)
    }

    fn var(&mut self, dtype: DType, kind: VarKind) -> Var {
        let name = self.name();
        self.func.add_var(name, dtype, kind)
    }

    /// A variable that later expressions may use.
    fn visible_var(&mut self, dtype: DType, kind: VarKind) -> Var {
        let var = self.var(dtype, kind);
        if dtype.scalar.is_int() && dtype.lanes == 1 {
            self.vars.push(var);
        }
        var
    }

    // ---- the function

    fn function(&mut self) {
        self.func.name = self.one_of(&["kernel", "two words", "", "f.1"]).to_string();
        self.func.level = self.one_of(&Level::ALL);
        for _ in 0..self.pick(3) {
            let dtype = self.one_of(&[DType::I32, DType::I64]);
            let symbol = self.visible_var(dtype, VarKind::Symbol);
            self.func.symbols.push(symbol);
            // A symbol has to be the size of something.
            let extent = self.func.var_expr(symbol);
            let tensor = self.tensor(BufferOrigin::Param, DType::F32, vec![extent]);
            self.func.params.push(Param::Tensor {
                buffer: tensor,
                output: false,
            });
        }
        for _ in 0..self.pick(4) {
            if self.chance(4) {
                let dtype = self.numeric();
                let var = self.visible_var(dtype, VarKind::Param);
                self.func.params.push(Param::Scalar(var));
            } else {
                let output = self.chance(2);
                let buffer = self.any_tensor(BufferOrigin::Param);
                self.func.params.push(Param::Tensor { buffer, output });
            }
        }
        for _ in 0..self.pick(2) {
            let buffer = self.any_tensor(BufferOrigin::Workspace);
            self.func.workspaces.push(buffer);
        }
        if self.chance(3) {
            // A view made outside of any kernel is declared by no statement.
            let base = self.tensor(BufferOrigin::Workspace, DType::F32, self.shape_of(&[8]));
            self.func.workspaces.push(base);
            let view = self.tensor(BufferOrigin::View(base), DType::F16, self.shape_of(&[4, 4]));
            self.loads.push(view);
        }
        self.attributes();
        let kernels = self.pick(3);
        if kernels > 0 && self.chance(4) {
            self.prints(kernels as u32);
        }
        for _ in 0..kernels {
            self.kernel();
        }
    }

    fn attributes(&mut self) {
        self.func.attrs.compile_flags = self.list(2, |g| format!("-DTEXT={}", g.text()));
        for _ in 0..self.pick(2) {
            let (key, value) = (self.text(), self.attr_value(0));
            self.func.attrs.pass_configs.insert(key, value);
        }
        for _ in 0..self.pick(2) {
            let config = self.list(3, |g| (g.name(), g.attr_value(0)));
            self.func.attrs.autotune.push(config.into_iter().collect());
        }
    }

    /// A place for what kernels print.
    fn prints(&mut self, kernels: u32) {
        let shape = self.shape_of(&[prints::WORDS.into()]);
        let buffer = self.tensor(BufferOrigin::Workspace, Prints::DTYPE, shape);
        self.func.workspaces.push(buffer);
        let formats = self.list(2, |g| PrintFormat {
            kernel: g.one_of(&[0, kernels - 1]),
            message: g.text(),
            values: g.list(2, |g| g.one_of(&[Scalar::I32, Scalar::F64, Scalar::BF16])),
        });
        self.func.attrs.prints = Some(Prints { buffer, formats });
    }

    fn attr_value(&mut self, depth: usize) -> AttrValue {
        match self.pick(if depth < 2 { 7 } else { 6 }) {
            0 => AttrValue::None,
            1 => AttrValue::Bool(self.chance(2)),
            2 => AttrValue::Int(self.one_of(&[0, -1, 1 << 40, i64::MIN])),
            3 => AttrValue::Float(F64(self.any_f64())),
            4 => AttrValue::Str(self.text()),
            5 => AttrValue::DType(self.any_dtype()),
            _ => AttrValue::List(self.list(3, |g| g.attr_value(depth + 1))),
        }
    }

    fn any_dtype(&mut self) -> DType {
        let scalar = self.one_of(&Scalar::ALL);
        DType::vector(scalar, self.one_of(&[1, 1, 2, 4]))
    }

    /// A type that arithmetic is defined on.
    fn numeric(&mut self) -> DType {
        DType::scalar(self.one_of(&[
            Scalar::I32,
            Scalar::F32,
            Scalar::I64,
            Scalar::F16,
            Scalar::BF16,
            Scalar::U8,
            Scalar::F64,
            Scalar::I8,
            Scalar::U32,
            Scalar::F8E4M3FN,
        ]))
    }

    fn any_tensor(&mut self, origin: BufferOrigin) -> Buffer {
        let dtype = self.numeric();
        let sizes = self.list(3, |g| g.small() as i64 * 4);
        let shape = self.shape_of(&sizes);
        let buffer = self.tensor(origin, dtype, shape);
        let data = &self.func.buffers[buffer];
        let (rank, dtype) = (data.shape.len(), data.dtype);
        if self.chance(4) {
            self.func.buffers[buffer].safe_value = Some(self.literal(dtype));
        }
        if self.chance(4) {
            let strides = (0..rank).map(|_| Expr::i32(self.small() as i32)).collect();
            self.func.buffers[buffer].strides = Some(strides);
        }
        buffer
    }

    fn shape_of(&self, sizes: &[i64]) -> Vec<Expr> {
        sizes.iter().map(|s| Expr::i32(*s as i32)).collect()
    }

    /// A global buffer that expressions may load from.
    fn tensor(&mut self, origin: BufferOrigin, dtype: DType, shape: Vec<Expr>) -> Buffer {
        let buffer = self.new_buffer(Scope::Global, dtype, shape, origin);
        self.loads.push(buffer);
        buffer
    }

    fn new_buffer(
        &mut self,
        scope: Scope,
        dtype: DType,
        shape: Vec<Expr>,
        origin: BufferOrigin,
    ) -> Buffer {
        let name = self.name();
        self.func.buffers.push(BufferData {
            origin,
            ..BufferData::new(name, scope, dtype, shape)
        })
    }

    /// A buffer allocated here.
    fn alloc(&mut self, scope: Scope, dtype: DType, sizes: &[i64]) -> Buffer {
        let shape = self.shape_of(sizes);
        self.alloc_as(scope, dtype, shape, BufferOrigin::Alloc)
    }

    fn alloc_as(
        &mut self,
        scope: Scope,
        dtype: DType,
        shape: Vec<Expr>,
        origin: BufferOrigin,
    ) -> Buffer {
        let buffer = self.new_buffer(scope, dtype, shape, origin);
        if self.chance(3) {
            self.func.buffers[buffer].layout = self.layout(scope, buffer);
        }
        self.emit(StmtKind::Alloc(buffer));
        buffer
    }

    fn kernel(&mut self) {
        let (vars, loads) = (self.vars.len(), self.loads.len());
        let axes = self.pick(3) + 1;
        let mut grid = Vec::new();
        for axis in 0..axes {
            let extent = if self.chance(2) {
                self.int_expr(DType::I32, 2)
            } else {
                self.int_literal_between(DType::I32, 1, 64)
            };
            // A constant that the generator happened to fold to is at least one.
            let extent = match extent.as_int() {
                Some(n) if n < 1 => Expr::i32(1),
                _ => extent,
            };
            let var = self.var(DType::I32, VarKind::BlockIdx(axis as u8));
            grid.push((var, extent));
        }
        self.vars.extend(grid.iter().map(|(v, _)| *v));
        let thread_vars =
            [0, 1, 2].map(|axis| self.visible_var(DType::I32, VarKind::ThreadIdx(axis)));
        let tensor = self.func.tensors().next().map(|(b, _)| b);
        let attrs = KernelAttrs {
            swizzle: self.optional(|g| Swizzle {
                panel: g.small(),
                order: g.one_of(&[RasterOrder::Row, RasterOrder::Column]),
            }),
            min_blocks_per_sm: self.optional(|g| g.small()),
            cluster: self.optional(|g| [g.small(), 1, 1]),
            imports: self.list(2, |g| g.text()),
            rank: None,
            no_reg_realloc: self.chance(3),
            resident: self.chance(3),
            l2_hit_ratio: match tensor {
                Some(b) => self.list(1, |g| (b, g.literal(DType::F32))),
                None => Vec::new(),
            },
            may_alias: match tensor {
                Some(b) => self.list(1, |_| b),
                None => Vec::new(),
            },
        };
        let body = self.nested(|g| g.statements());
        self.vars.truncate(vars);
        self.loads.truncate(loads);
        self.func.kernels.push(Kernel {
            grid,
            threads: [256, 1, 1],
            thread_vars,
            attrs,
            body,
            span: Span::NONE,
        });
    }

    // ---- statements

    fn statements(&mut self) {
        for _ in 0..self.pick(6) {
            self.statement();
        }
    }

    fn statement(&mut self) {
        if self.depth > 4 {
            return self.plain_statement();
        }
        match self.pick(8) {
            0 | 1 => self.plain_statement(),
            2 => self.control(),
            3 => self.loop_statement(),
            4 | 5 => match self.func.level {
                Level::Tile if !self.in_parallel => self.tile_statement(),
                Level::Tile => self.plain_statement(),
                Level::Loop => self.micro_statement(),
                Level::Device => self.device_statement(),
            },
            _ => self.thread_statement(),
        }
    }

    fn plain_statement(&mut self) {
        match self.pick(8) {
            0 => {
                let dtype = self.numeric();
                let value = self.expr(dtype, 3);
                let var = self.visible_var(dtype, VarKind::Let);
                self.emit(StmtKind::Let { var, value });
            }
            1 => self.store(),
            2 => {
                let dtype = self.numeric();
                let value = self.literal(dtype);
                let buffer = self.alloc(Scope::Var, dtype, &[]);
                self.emit(StmtKind::Store {
                    buffer,
                    indices: Vec::new(),
                    value,
                });
                self.loads.push(buffer);
            }
            3 => {
                let dtype = self.numeric();
                let lanes = self.one_of(&[1, 1, 4]);
                let buffer = self.alloc(Scope::Local, dtype.with_lanes(lanes), &[4]);
                if lanes == 1 && !self.in_parallel {
                    self.loads.push(buffer);
                }
            }
            4 if !self.in_parallel => {
                let dtype = self.numeric();
                let buffer = self.alloc(Scope::Shared, dtype, &[8, 16]);
                if self.chance(4) {
                    self.func.buffers[buffer].versions = self.small();
                }
                // Plain accesses of a buffer with versions have an index more.
                if self.func.buffers[buffer].versions == 1 {
                    self.loads.push(buffer);
                }
                if self.chance(3) {
                    let bytes = DType::U8;
                    let bits = dtype.bits() as i64 * 8 * 16;
                    let shape = self.shape_of(&[bits / 8]);
                    let view =
                        self.alloc_as(Scope::Shared, bytes, shape, BufferOrigin::View(buffer));
                    self.func.buffers[view].layout = None;
                    if self.chance(2) {
                        // A view needs no statement.
                        self.block.pop();
                    }
                    self.loads.push(view);
                }
            }
            5 => {
                let cond = self.bool_expr(3);
                self.emit(StmtKind::Assume(cond));
            }
            6 => {
                let (cond, message) = (self.bool_expr(3), self.text());
                self.emit(StmtKind::Assert { cond, message });
            }
            _ if !self.in_parallel => {
                let address = self.address();
                let shape = self.shape_of(&[16]);
                let buffer = self.alloc_as(
                    Scope::Global,
                    DType::F16,
                    shape,
                    BufferOrigin::Pointer(address),
                );
                self.loads.push(buffer);
            }
            _ => self.store(),
        }
    }

    fn store(&mut self) {
        let Some((buffer, indices)) = self.element() else {
            return;
        };
        let value = self.expr(self.func.buffers[buffer].dtype, 3);
        self.emit(StmtKind::Store {
            buffer,
            indices,
            value,
        });
    }

    fn control(&mut self) {
        match self.pick(5) {
            0 => {
                let cond = self.uniform(|g| g.bool_expr(2));
                let then = self.nested(|g| g.statements());
                let otherwise = if self.chance(2) {
                    self.nested(|g| g.statements())
                } else {
                    Vec::new()
                };
                self.emit(StmtKind::If {
                    cond,
                    then,
                    otherwise,
                });
            }
            1 => {
                let cond = self.uniform(|g| g.bool_expr(2));
                let body = self.in_loop_body(|g| g.statements());
                self.emit(StmtKind::While { cond, body });
            }
            2 if self.in_loop => {
                let kind = self.one_of(&[StmtKind::Break, StmtKind::Continue]);
                self.emit(kind);
            }
            3 if self.depth == 1 && !self.in_parallel => {
                let groups = self.one_of(&[vec![0], vec![1], vec![0, 1]]);
                let body = self.nested(|g| g.statements());
                self.emit(StmtKind::WarpGroup { groups, body });
            }
            _ => self.plain_statement(),
        }
    }

    fn in_loop_body(&mut self, fill: impl FnOnce(&mut Self)) -> Block {
        let outer = std::mem::replace(&mut self.in_loop, true);
        let body = self.nested(fill);
        self.in_loop = outer;
        body
    }

    /// Turns for the statements of a pipelined loop, as the level allows them.
    fn take_turns(&mut self, body: &mut Block) {
        let open = self.func.level == Level::Tile;
        for stmt in body.iter_mut().filter(|stmt| stmt.takes_turn()) {
            let mut number = || (!open || self.chance(2)).then(|| self.pick(4) as u32);
            stmt.turn = Some(Turn {
                stage: number(),
                order: number(),
            });
        }
    }

    fn loop_statement(&mut self) {
        let structured = self.func.level != Level::Device && !self.in_parallel;
        let kind = match self.pick(if structured { 6 } else { 3 }) {
            0 => LoopKind::Serial,
            1 => LoopKind::Unroll {
                factor: self.optional(|g| g.small()),
            },
            2 => LoopKind::Vectorized,
            3 => LoopKind::Parallel {
                coalesced_width: self.optional(|g| g.small()),
                layout: self.optional(|_| LayoutAttr::Linear),
            },
            4 => LoopKind::Pipelined(PipelineSpec {
                stages: self.pick(4) as u32,
                schedule: self.optional(|_| "plain".to_string()),
                sync: self.list(2, |g| g.list(2, |g| g.pick(3) as i32 - 1)),
                versioned: Vec::new(),
            }),
            _ => LoopKind::Persistent {
                wave_size: self.int_literal_between(DType::I32, 1, 200),
                index: self.int_expr(DType::I32, 2),
                group_size: self.int_literal_between(DType::I32, 1, 8),
            },
        };
        let dtype = self.one_of(&[DType::I32, DType::I32, DType::I64]);
        let axes = match kind {
            LoopKind::Parallel { .. } | LoopKind::Persistent { .. } => self.pick(2) + 1,
            _ => 1,
        };
        let mut ranges = Vec::new();
        for _ in 0..axes {
            let stop = match self.chance(3) {
                true => self.uniform(|g| g.int_expr(dtype, 2)),
                false => self.int_literal_between(dtype, 1, 64),
            };
            let plain = !matches!(kind, LoopKind::Persistent { .. }) && self.chance(3);
            let (start, step) = if plain {
                (
                    self.uniform(|g| g.int_expr(dtype, 1)),
                    self.int_literal_between(dtype, 1, 4),
                )
            } else {
                (Expr::zero(dtype), Expr::int(1, dtype))
            };
            ranges.push((start, stop, step));
        }
        let parallel = matches!(kind, LoopKind::Parallel { .. });
        let mut axes = Vec::new();
        let mut body = {
            let (outer_parallel, outer_loop) = (self.in_parallel, self.in_loop);
            self.in_parallel |= parallel;
            // A break may not leave a parallel loop.
            self.in_loop = !parallel;
            let body = self.nested(|g| {
                for (start, stop, step) in ranges {
                    let var = g.visible_var(dtype, VarKind::Loop);
                    axes.push(Axis {
                        var,
                        start,
                        stop,
                        step,
                    });
                }
                g.statements();
            });
            (self.in_parallel, self.in_loop) = (outer_parallel, outer_loop);
            body
        };
        if matches!(kind, LoopKind::Pipelined(_)) && self.chance(2) {
            self.take_turns(&mut body);
        }
        self.emit(StmtKind::For(Loop { kind, axes, body }));
    }
}
