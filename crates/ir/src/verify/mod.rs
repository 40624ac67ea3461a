//! The verifier: what every function satisfies, at each level.
//!
//! Passes may rely on all of this, and the pass driver checks it between passes. Each rule has
//! a name, which is the code of the diagnostic that reports a breach. Rules marked *tile*,
//! *loop* or *device* hold at that level only.
//!
//! ## Ids, names and scopes
//! - `dangling-id`: every variable and buffer id has data.
//! - `var-kind`: a variable is bound by what its kind says; a block or thread index has the
//!   number of its axis.
//! - `var-twice`, `buffer-twice`: each is bound or declared once in the function.
//! - `var-scope`, `buffer-scope`: each is used only after its binding, in the same block or one
//!   inside it. Views and pointers may go without a statement ([`crate::declare`]).
//! - `block-depth`, `expr-depth`: blocks and expressions nest within
//!   [`MAX_BLOCK_DEPTH`], [`MAX_EXPR_DEPTH`](crate::MAX_EXPR_DEPTH) and
//!   [`MAX_EXPR_SIZE`](crate::MAX_EXPR_SIZE).
//! - `level`: *tile* has no micro-ops, and of the device operations only commits, waits and
//!   fences, which users write for split-phase copies and products; *loop* has of the others what
//!   is derived for pipelined loops (barriers of the block or of some waves, priorities,
//!   iterations); *device* has no tile operations and no parallel, pipelined or
//!   persistent loops.
//!
//! ## Types
//! - `dtype-lanes`: a type has at least one lane.
//! - `constant-range`: an integer constant is a scalar in its type's range, a float constant
//!   is rounded to its type.
//! - `expr-type`: a node's type is the one that follows from its operands.
//! - `operand-types`: operands of one operation have one type, and the operation is defined on
//!   it.
//! - `division-by-zero`: no divisor is the constant zero.
//! - `shift-range`: a constant shift amount is below the width.
//! - `select-condition`: the condition of a selection is bool.
//! - `cast-types`: a cast keeps the lanes and neither makes nor takes an address.
//! - `reinterpret-width`: both sides of a reinterpretation have equally many bits.
//! - `math-arity`: a function has as many arguments as it takes.
//! - `vector-lanes`: ramps and broadcasts make at least two lanes from a scalar; a lane number
//!   is below the lane count.
//! - `let-type`, `store-type`, `result-type`, `condition-type`: a value has the type of what it
//!   is given to; conditions are scalar bool.
//!
//! ## Memory
//! - `buffer-shape`: extents are integers, positive where constant, and constant outside
//!   global memory; one stride a dimension.
//! - `buffer-origin`: scope and origin agree. Parameters, workspaces and pointers are global,
//!   variables have rank zero, barriers are uint64 with a count each, reducers fold with a
//!   reducer's operation, an initial value belongs to a variable or local array.
//! - `view-bits`, `view-scope`: a view has its base's scope and number of bits, and its base
//!   is memory that holds data; views do not go in circles.
//! - `shared-place`: only allocations of shared memory say where they lie, at device level, at
//!   a multiple of 16 bytes, and with room for all their versions.
//! - `layout-rank`, `layout-scope`: a layout maps as many indices as the buffer has
//!   dimensions; fragment maps belong to fragments, and below tile level to the register
//!   arrays that fragments become; all others do not.
//! - `layout-shape`: a layout that is decided is one of the buffer's shape, or the loop's.
//! - `layout-undecided`: below tile level no layout is a wish or a map that the user wrote.
//! - `safe-value`: belongs to global memory and has the buffer's type.
//! - `index-count`, `index-type`, `index-bounds`: one integer index a dimension, the last
//!   possibly a vector; constant ones within the dimension. Below tile level constants may be
//!   outside: an iteration that was peeled off is guarded as the others are.
//! - `barrier-as-data`: barriers are neither loaded nor stored, and barrier operands are
//!   barriers.
//! - `reducer-access`: a reducer is read only after a finalisation without destination, and
//!   never written by a store.
//! - *tile* `fragment-access`: outside of parallel loops no element but the first of a fragment
//!   is addressed by constants.
//! - *tile* `local-parallel-index`: a local array is not indexed by a parallel loop's index.
//! - *tile* `parallel-fragment-extent`: a parallel axis that indexes a fragment has a constant
//!   range.
//! - `region-rank`, `region-bounds`: a region has a start and a positive extent a dimension,
//!   and lies within the buffer as far as its constants tell. On global memory copies and
//!   atomics may reach past the end, and at tile level a constant start lies inside.
//!
//! ## Launch and control flow
//! - `compile-flag`: what is passed to the target's compiler is on the list of harmless flags.
//! - `symbol-unbound`: a symbol is an integer that occurs in a parameter's shape or strides.
//! - `kernel-grid`, `kernel-threads`: one to three grid axes with integer extents, at least
//!   one where constant; 1 to 1024 threads; positive cluster and swizzle sizes, at most 16
//!   blocks of a cluster.
//! - `loop-range`: index, start, stop and step have one integer type; the step is not the
//!   constant zero, and positive where the loop is not serial; persistent domains start at zero
//!   in steps of one.
//! - `loop-axes`: only parallel and persistent loops have several axes, and none has no axis.
//! - `turn-place`: a turn stands before a statement of a pipelined loop's own body that is no
//!   `let`, `alloc` or `assume`. `turn-missing`: if one of them has a turn, all have.
//!   *loop* `turn-open`: a turn has a stage and an order.
//! - *tile* `parallel-nesting`: a parallel loop contains no tile operation but reducer
//!   updates, no pipelined or persistent loop, no warp group, no allocation but of
//!   variables and local arrays, and another parallel loop only as its single statement.
//! - `break-outside`, `break-parallel`: `break` and `continue` stand in a loop, and no break
//!   leaves a parallel one.
//! - *tile* `tile-op-divergent`: what the block does together is not under a condition that
//!   depends on the thread.
//! - `warp-group`: groups exist, once each, and do not nest.
//!
//! ## Operations
//! Their rules are listed where they are checked: tile operations (*tile*, *loop*) in `copy`,
//! `gemm`, `reduce` and `reducer`, thread operations in `thread`, micro and device operations in
//! `lower`.

mod buffer;
mod copy;
mod expr;
mod func;
mod gemm;
mod lower;
mod reduce;
mod reducer;
mod region;
mod stmt;
mod thread;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::declare::declared;
use crate::diag::{Code, Diagnostic, Span};
use crate::func::{Func, Level, VarKind};
use crate::ids::{Buffer, Var};
use crate::stmt::LoopKind;
use crate::text::{MAX_BLOCK_DEPTH, identifier};
use crate::visit_ids::Id;

/// After so many errors the rest is not worth saying.
const MAX_ERRORS: usize = 100;

/// Checks every rule of the module comment.
pub fn verify(func: &Func) -> Result<(), Vec<Diagnostic>> {
    let func = &*declared(func);
    let mut v = Verifier {
        func,
        errors: Vec::new(),
        at: func.span,
        visible: FxHashSet::default(),
        bound: FxHashMap::default(),
        scope: Vec::new(),
        blocks: Vec::new(),
        loops: Vec::new(),
        parallel_axes: FxHashMap::default(),
        by_thread: FxHashSet::default(),
        divergent: None,
        in_warp_group: false,
        num_threads: 0,
        cluster_blocks: 1,
        reducers: FxHashMap::default(),
    };
    v.function();
    if v.errors.is_empty() {
        Ok(())
    } else {
        Err(v.errors)
    }
}

struct Verifier<'a> {
    func: &'a Func,
    errors: Vec<Diagnostic>,
    /// The statement or declaration at hand.
    at: Span,
    /// What may be used here.
    visible: FxHashSet<Id>,
    /// What was ever bound, and where.
    bound: FxHashMap<Id, Span>,
    /// What the open blocks bound, innermost last.
    scope: Vec<Id>,
    blocks: Vec<BlockKind>,
    loops: Vec<&'a LoopKind>,
    /// The axes of open parallel loops, and whether their range is constant.
    parallel_axes: FxHashMap<Var, bool>,
    /// Variables whose value differs between threads of a block.
    by_thread: FxHashSet<Var>,
    /// The condition on the thread that everything here is under.
    divergent: Option<Span>,
    in_warp_group: bool,
    num_threads: u32,
    cluster_blocks: u32,
    reducers: FxHashMap<Buffer, reducer::State>,
}

/// What a block belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Kernel,
    Loop,
    If,
    WarpGroup,
}

impl Verifier<'_> {
    /// Notes a breach of a rule; more can be said on the result.
    fn error(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        // A synthesised node has no place of its own.
        let span = if span.is_none() { self.at } else { span };
        if self.errors.len() >= MAX_ERRORS {
            // The last one is overwritten, so that callers need not care.
            self.errors.pop();
        }
        self.errors
            .push(Diagnostic::error(Code(code), span, message));
        let last = self.errors.len() - 1;
        &mut self.errors[last]
    }

    fn fail(&mut self, code: &'static str, message: impl Into<String>) -> &mut Diagnostic {
        self.error(code, self.at, message)
    }

    fn tile_level(&self) -> bool {
        self.func.level == Level::Tile
    }

    fn in_parallel(&self) -> bool {
        !self.parallel_axes.is_empty()
    }

    // ---- names

    fn var_name(&self, var: Var) -> String {
        self.func
            .vars
            .get(var)
            .map_or_else(|| var.to_string(), |d| identifier(&d.name))
    }

    fn buffer_name(&self, buffer: Buffer) -> String {
        self.func
            .buffers
            .get(buffer)
            .map_or_else(|| buffer.to_string(), |d| identifier(&d.name))
    }

    fn open(&mut self) -> usize {
        self.scope.len()
    }

    /// Forgets what was bound since the matching [`Verifier::open`].
    fn close(&mut self, since: usize) {
        for id in self.scope.drain(since..) {
            self.visible.remove(&id);
        }
    }

    /// Makes the variable visible to the end of the block.
    fn bind_var(&mut self, var: Var, kind: VarKind) {
        let Some(data) = self.func.vars.get(var) else {
            self.fail("dangling-id", format!("{var} does not exist"));
            return;
        };
        let name = self.var_name(var);
        if data.kind != kind {
            let message = format!("`{name}` is a {:?}, but is bound as a {kind:?}", data.kind);
            self.error("var-kind", data.span, message);
        }
        if data.dtype.lanes == 0 {
            self.error("dtype-lanes", data.span, format!("`{name}` has no lanes"));
        }
        if let Some(&first) = self.bound.get(&Id::Var(var)) {
            let error = self.fail("var-twice", format!("`{name}` is bound twice"));
            error.secondary.push(crate::Label {
                span: first,
                text: "first bound here".to_string(),
            });
            error
                .help
                .push("give each copy of the code a variable of its own".to_string());
        }
        self.make_visible(Id::Var(var));
    }

    fn make_visible(&mut self, id: Id) {
        self.bound.insert(id, self.at);
        if self.visible.insert(id) {
            self.scope.push(id);
        }
    }

    /// Whether the variable may be used here; if not, that is said.
    fn use_var(&mut self, var: Var, span: Span) -> bool {
        if self.func.vars.get(var).is_none() {
            self.error("dangling-id", span, format!("{var} does not exist"));
            return false;
        }
        if self.visible.contains(&Id::Var(var)) {
            return true;
        }
        let name = self.var_name(var);
        self.out_of_scope(
            "var-scope",
            Id::Var(var),
            span,
            &format!("variable `{name}`"),
        );
        false
    }

    /// Whether the buffer may be used here; if not, that is said.
    fn use_buffer(&mut self, buffer: Buffer, span: Span) -> bool {
        if self.func.buffers.get(buffer).is_none() {
            self.error("dangling-id", span, format!("{buffer} does not exist"));
            return false;
        }
        if self.visible.contains(&Id::Buffer(buffer)) {
            return true;
        }
        let name = self.buffer_name(buffer);
        self.out_of_scope(
            "buffer-scope",
            Id::Buffer(buffer),
            span,
            &format!("buffer `{name}`"),
        );
        false
    }

    fn out_of_scope(&mut self, code: &'static str, id: Id, span: Span, what: &str) {
        let before = self.bound.get(&id).copied();
        let message = match before {
            Some(_) => format!("{what} is used outside of the block that declares it"),
            None => format!("{what} is used but not declared before"),
        };
        let error = self.error(code, span, message);
        if let Some(place) = before {
            error.secondary.push(crate::Label {
                span: place,
                text: "declared here".to_string(),
            });
        }
    }

    fn too_deep(&mut self) -> bool {
        let deep = self.blocks.len() >= MAX_BLOCK_DEPTH;
        if deep {
            self.fail(
                "block-depth",
                format!("blocks nest more than {MAX_BLOCK_DEPTH} levels deep"),
            );
        }
        deep
    }
}
