//! PipelinePlanning: which statements of a pipelined loop run ahead, how far, in what order.
//!
//! Copies from global to shared memory, with all that they need, run `stages - 1` iterations
//! ahead of what uses them; the rest stays. The result is written down: with each statement its
//! turn (stage, and place in the order), with the loop the buffers whose iterations may have
//! versions of their own. Turns that the user gave are honoured after they are checked.
//!
//! Before:
//! ```text
//! for k in pipelined(0, 32) stages=3 {
//!   copy A[by * 128 +: 128, k * 32 +: 32] -> A_shared[0 +: 128, 0 +: 32]
//!   copy B[k * 32 +: 32, bx * 128 +: 128] -> B_shared[0 +: 32, 0 +: 128]
//!   gemm A_shared[0 +: 128, 0 +: 32], B_shared[0 +: 32, 0 +: 128] -> C[0 +: 128, 0 +: 128]
//! }
//! ```
//! After:
//! ```text
//! for k in pipelined(0, 32) stages=3 versioned=[A_shared, B_shared] {
//!   @(stage=0, order=0) copy A[by * 128 +: 128, k * 32 +: 32] -> A_shared[0 +: 128, 0 +: 32]
//!   @(stage=0, order=1) copy B[k * 32 +: 32, bx * 128 +: 128] -> B_shared[0 +: 32, 0 +: 128]
//!   @(stage=2, order=2) gemm A_shared[0 +: 128, 0 +: 32], B_shared[0 +: 32, 0 +: 128] -> C[0 +: 128, 0 +: 128]
//! }
//! ```
//!
//! Needs tile IR. It never changes what the loop computes, and where it leaves something
//! unpipelined it says why.

mod ahead;
mod body;
mod private;
mod turns;

use rustc_hash::FxHashMap;
use tilewright_ir::visit::child_blocks;
use tilewright_ir::{
    Block, Buffer, Code, CopyKind, Diagnostic, Diagnostics, Func, GemmKind, Loop, LoopKind,
    PipelineSpec, Scope, Span, Stmt, StmtKind, Target, ThreadOp, TileOp, Var,
};

use self::ahead::{Around, Item};
use self::private::{First, any_stmt, first_use};
use self::turns::Turns;
use super::effects::Effects;
use crate::Changed;

const NOT_PIPELINED: Code = Code("not-pipelined");
const SYNC_DERIVED: Code = Code("sync-derived");
const READ_BEFORE_WRITE: Code = Code("pipeline-read-before-write");

/// Plans every pipelined loop.
pub fn pipeline_planning(func: &mut Func, _target: Target, diags: &mut Diagnostics) -> Changed {
    let mut planned = 0;
    for at in 0..func.kernels.len() {
        let body = std::mem::take(&mut func.kernels[at].body);
        let whole = body.clone();
        let mut planning = Planning {
            may_alias: func.kernels[at].attrs.may_alias.clone(),
            func,
            diags,
            kernel: &whole,
            in_warp_group: false,
            planned: 0,
        };
        let body = planning.block(body, None, false);
        planned += planning.planned;
        func.kernels[at].body = body;
    }
    if planned > 0 {
        Changed::Yes
    } else {
        Changed::No
    }
}

/// What runs after a statement: the rest of its block, then what follows that.
#[derive(Clone, Copy)]
struct Rest<'a> {
    stmts: &'a [Stmt],
    then: Option<&'a Rest<'a>>,
}

struct Planning<'a> {
    func: &'a mut Func,
    diags: &'a mut Diagnostics,
    may_alias: Vec<Buffer>,
    /// The kernel's body as it was.
    kernel: &'a [Stmt],
    in_warp_group: bool,
    planned: usize,
}

impl Planning<'_> {
    /// A block; `repeats` is one that may run again after its end.
    fn block(&mut self, block: Block, rest: Option<&Rest<'_>>, repeats: bool) -> Block {
        let whole = block.clone();
        let again = Rest {
            stmts: &whole,
            then: rest,
        };
        let after = if repeats { Some(&again) } else { rest };
        let mut out = Vec::with_capacity(block.len());
        for (at, stmt) in block.into_iter().enumerate() {
            let here = Rest {
                stmts: &whole[at + 1..],
                then: after,
            };
            self.stmt(stmt, &here, &mut out);
        }
        out
    }

    fn stmt(&mut self, stmt: Stmt, rest: &Rest<'_>, out: &mut Block) {
        let span = stmt.span;
        let kind = match stmt.kind {
            StmtKind::For(mut l) => match l.kind.clone() {
                LoopKind::Pipelined(spec) if spec.stages > 0 || l.has_turns() => {
                    return self.pipelined(l, spec, span, rest, out);
                }
                LoopKind::Parallel { .. } => StmtKind::For(l),
                _ => {
                    l.body = self.block(l.body, Some(rest), true);
                    StmtKind::For(l)
                }
            },
            StmtKind::While { cond, body } => StmtKind::While {
                cond,
                body: self.block(body, Some(rest), true),
            },
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => StmtKind::If {
                cond,
                then: self.block(then, Some(rest), false),
                otherwise: self.block(otherwise, Some(rest), false),
            },
            StmtKind::WarpGroup { groups, body } => {
                let outer = std::mem::replace(&mut self.in_warp_group, true);
                let body = self.block(body, Some(rest), false);
                self.in_warp_group = outer;
                StmtKind::WarpGroup { groups, body }
            }
            other => other,
        };
        out.push(Stmt::new(kind, span));
    }

    fn pipelined(
        &mut self,
        mut l: Loop,
        mut spec: PipelineSpec,
        span: Span,
        rest: &Rest<'_>,
        out: &mut Block,
    ) {
        if !std::mem::take(&mut spec.sync).is_empty() {
            let message = "`sync` has no effect: the loop's waits and barriers are derived";
            self.diags
                .push(Diagnostic::warning(SYNC_DERIVED, span, message).help("leave it out"));
        }
        let original = l.clone();
        let planned = match self.obstacle(&l, span) {
            Some(why) => Err(why),
            None => self.plan(&mut l, &mut spec, span, rest, out),
        };
        if let Err((at, why)) = &planned
            && (spec.stages > 1 || original.has_turns())
        {
            self.warn(span, *at, why);
        }
        if planned == Ok(true) {
            self.planned += 1;
        } else {
            spec = PipelineSpec {
                stages: 1,
                ..PipelineSpec::default()
            };
            l = original;
            l.drop_turns();
            l.body = self.block(l.body, Some(rest), true);
        }
        l.kind = LoopKind::Pipelined(spec);
        out.push(Stmt::new(StmtKind::For(l), span));
    }

    /// What no schedule can be made around.
    fn obstacle(&self, l: &Loop, span: Span) -> Option<(Span, String)> {
        if self.in_warp_group {
            let why =
                "it runs in some warp groups only, and the block's barriers do not reach them";
            return Some((span, why.to_string()));
        }
        find_obstacle(&l.body, true)
    }

    /// Gives the statements their turns. False when something was said and the loop is left
    /// alone; an error says why it is.
    fn plan(
        &mut self,
        l: &mut Loop,
        spec: &mut PipelineSpec,
        span: Span,
        rest: &Rest<'_>,
        out: &mut Block,
    ) -> Result<bool, (Span, String)> {
        let user = l.has_turns();
        let body = std::mem::take(&mut l.body);
        let mut normal = body::normalise(self.func, body, user);
        let func: &Func = self.func;
        let names = name_effects(func, &normal.body);
        let mut items = Vec::new();
        for stmt in normal.body.iter().filter(|s| s.takes_turn()) {
            let mut effects = Effects::of(func, stmt);
            let used: Vec<Var> = effects.vars.iter().copied().collect();
            for var in used {
                if let Some(name) = names.get(&var) {
                    effects.reads.extend(&name.reads);
                }
            }
            items.push(Item { stmt, effects });
        }
        let index = l.axes[0].var;
        let read_after = |b: Buffer| is_read(func, b, Some(rest));
        let written_outside = |b: Buffer| is_written_outside(func, self.kernel, index, b);
        let around = Around {
            read_after: &read_after,
            written_outside: &written_outside,
            may_alias: &self.may_alias,
        };
        let ahead = ahead::find(func, &normal.body, &items, &around);
        let mut refused: Vec<(Span, String)> = Vec::new();
        for refusal in &ahead.refused {
            let name = &func.buffers[refusal.buffer].name;
            if refusal.wrong {
                let message =
                    format!("`{name}` is read before the loop writes it, and nothing else does");
                self.diags.push(
                    Diagnostic::error(READ_BEFORE_WRITE, refusal.at, message)
                        .also(span, "in the first iteration of this loop")
                        .help("copy the first tile before the loop, or copy before the use"),
                );
                return Ok(false);
            }
            refused.push((refusal.at, refusal.why.clone()));
        }
        let turns = if user {
            let turns = Turns::of_user(&items, &ahead, spec.stages);
            let mut versioned: Vec<Buffer> = Vec::new();
            let written = Effects::of_block(func, &normal.body).writes;
            let mut shared: Vec<Buffer> = written.iter().copied().collect();
            shared.retain(|b| func.buffers[*b].scope == Scope::Shared);
            shared.sort_unstable();
            for b in shared {
                if ahead::is_private(func, &normal.body, &written, b, &around) {
                    versioned.push(b);
                }
            }
            if let Err(error) = turns.check(func, &items, &versioned, span) {
                self.diags.push(*error);
                return Ok(false);
            }
            spec.versioned = versioned;
            turns
        } else {
            if ahead.versioned.is_empty() {
                return Err(match refused.into_iter().next() {
                    Some(first) => first,
                    None => {
                        let why = "nothing in it copies from global to shared memory for later use";
                        (span, why.to_string())
                    }
                });
            }
            let turns = Turns::automatic(&ahead, spec.stages);
            if let Err(error) = turns.check(func, &items, &ahead.versioned, span) {
                return Err((span, error.message));
            }
            spec.versioned = ahead.versioned;
            turns
        };
        drop(items);
        if spec.stages > 1 {
            for (at, why) in refused {
                self.warn(span, at, &format!("a copy stays where it is: {why}"));
            }
        }
        turns.store(&mut normal.body);
        out.extend(normal.allocs);
        l.body = normal.body;
        Ok(true)
    }

    fn warn(&mut self, loop_span: Span, at: Span, why: &str) {
        let mut warning = Diagnostic::warning(
            NOT_PIPELINED,
            loop_span,
            format!("this loop is not pipelined as asked: {why}"),
        );
        if at != loop_span && !at.is_none() {
            warning = warning.also(at, "because of this");
        }
        self.diags.push(warning);
    }
}

/// What the values of the body's names depend on.
fn name_effects(func: &Func, body: &Block) -> FxHashMap<Var, Effects> {
    let mut names: FxHashMap<Var, Effects> = FxHashMap::default();
    for stmt in body {
        if let StmtKind::Let { var, value } = &stmt.kind {
            let mut effects = Effects::of_expr(func, value);
            let used: Vec<Var> = effects.vars.iter().copied().collect();
            for inner in used {
                if let Some(known) = names.get(&inner) {
                    effects.reads.extend(&known.reads);
                }
            }
            names.insert(*var, effects);
        }
    }
    names
}

/// Whether what the loop leaves in the buffer is read by what comes after.
fn is_read(func: &Func, buffer: Buffer, rest: Option<&Rest<'_>>) -> bool {
    let Some(rest) = rest else {
        return false;
    };
    match first_use(func, buffer, rest.stmts, &|_| false) {
        First::Reads { .. } => true,
        First::Writes => false,
        First::Nothing => is_read(func, buffer, rest.then),
    }
}

/// Whether statements of the kernel other than the loop over `index` write to the buffer.
fn is_written_outside(func: &Func, block: &[Stmt], index: Var, buffer: Buffer) -> bool {
    block.iter().any(|stmt| {
        if let StmtKind::For(l) = &stmt.kind
            && l.axes.iter().any(|a| a.var == index)
        {
            return false;
        }
        let blocks = child_blocks(stmt);
        if blocks.is_empty() {
            return Effects::of(func, stmt).writes.contains(&buffer);
        }
        let mut blocks = blocks.into_iter();
        blocks.any(|b| is_written_outside(func, b, index, buffer))
    })
}

/// The first statement that keeps a loop from being pipelined. `own` is whether a `break` here
/// leaves the loop.
fn find_obstacle(block: &[Stmt], own: bool) -> Option<(Span, String)> {
    block.iter().find_map(|stmt| {
        let why = match &stmt.kind {
            StmtKind::Break | StmtKind::Continue if own => "an iteration may end early",
            StmtKind::For(l) if matches!(l.kind, LoopKind::Pipelined(ref s) if s.stages > 0) => {
                "another pipelined loop is inside"
            }
            StmtKind::WarpGroup { .. } => "its warp groups do different things",
            StmtKind::Device(_) => "it holds waits or barriers of its own",
            StmtKind::Tile(TileOp::Copy(c)) if c.kind != CopyKind::Sync => {
                "it holds a copy that the user waits for"
            }
            StmtKind::Tile(TileOp::Gemm(g)) if g.kind != GemmKind::Auto => {
                "it holds a gemm that the user waits for"
            }
            StmtKind::Thread(
                ThreadOp::BarrierArrive { .. }
                | ThreadOp::BarrierWait { .. }
                | ThreadOp::BarrierExpect { .. }
                | ThreadOp::SyncGrid
                | ThreadOp::SyncCluster
                | ThreadOp::ClusterArrive
                | ThreadOp::ClusterWait,
            ) => "it waits at barriers of the user",
            _ => {
                let own = own && !matches!(stmt.kind, StmtKind::For(_) | StmtKind::While { .. });
                return child_blocks(stmt)
                    .into_iter()
                    .find_map(|b| find_obstacle(b, own));
            }
        };
        Some((stmt.span, why.to_string()))
    })
    .or_else(|| {
        // A result that other statements use would have to be computed with each of them.
        let bound = |s: &Stmt| matches!(&s.kind, StmtKind::Thread(op) if op.result().is_some());
        let at = block.iter().find(|s| own && bound(s))?;
        any_stmt(block, &bound).then(|| {
            let why = "a result of an operation between threads is used in the iteration";
            (at.span, why.to_string())
        })
    })
}
