//! The named schedules: one file each, one table.
//!
//! A schedule is a function from the pieces of a loop and the machine to an [`Arrangement`]: the
//! pieces, or parts of them, in clusters, each with how many iterations ahead it runs. Or it says
//! why it does not apply. It writes no wait, barrier, version, prologue or epilogue: those are
//! derived from the order ([`super::derive`]).

mod in_flight;
mod late_wait;
mod multiplies;
mod ping_pong;
mod plain;
mod producer_consumer;
mod read_ahead;

use std::borrow::Cow;

use tilewright_ir::visit::child_blocks_mut;
use tilewright_ir::{Func, Kernel, Loop, LoopKind, Machine, PipelineSpec, Stmt, StmtKind, Var};

use super::arrangement::Arrangement;
use super::pieces::Pieces;
use super::text::{is_text, parse};

/// Why a schedule does not apply.
pub(super) type Why = Cow<'static, str>;

/// What a schedule is asked about.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub func: &'a Func,
    pub kernel: &'a Kernel,
    pub machine: &'a Machine,
    pub pieces: &'a Pieces,
    pub l: &'a Loop,
}

/// A schedule by its name.
#[derive(Clone, Copy, Debug)]
pub struct NamedSchedule {
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    pub(super) arrange: fn(Question<'_>) -> Result<Arrangement, Why>,
}

/// Every schedule. Of those that cost the same the first is taken.
pub const SCHEDULES: &[NamedSchedule] = &[
    NamedSchedule {
        name: "plain",
        about: "copies first, then the rest of the body as it was written",
        arrange: plain::arrange,
    },
    NamedSchedule {
        name: "late_wait",
        about: "the same, with a barrier before the first use of what was copied, so that the wait \
                for it leaves newer copies in flight",
        arrange: late_wait::arrange,
    },
    NamedSchedule {
        name: "read_ahead",
        about: "operands of a product are read one step along K ahead of the matrix instructions, \
                into registers of their own",
        arrange: read_ahead::arrange,
    },
    NamedSchedule {
        name: "in_flight",
        about: "the plain order with a version to spare, so that the product of the iteration \
                before runs while the block meets and copies are issued",
        arrange: in_flight::arrange,
    },
    NamedSchedule {
        name: "ping_pong",
        about: "one half of the block's waves reads the operands of a step along K while the other \
                half multiplies, one cluster apart",
        arrange: ping_pong::arrange,
    },
    NamedSchedule {
        name: "producer_consumer",
        about: "a thread of a warp group more has the copy engine bring the tiles, the others \
                multiply; arrival barriers hand the tiles over",
        arrange: producer_consumer::arrange,
    },
];

/// The schedule of this name.
pub fn find_schedule(name: &str) -> Option<&'static NamedSchedule> {
    SCHEDULES.iter().find(|s| s.name == name)
}

/// Asks for a schedule, by its name or as orders, for every pipelined loop that asks for none itself;
/// orders are for the loops that they name. Gives the names that no pipelined loop has.
pub fn ask_for_schedule(func: &mut Func, asked: &str) -> Vec<String> {
    let orders = match is_text(asked) {
        true => parse(asked).unwrap_or_default(),
        false => Vec::new(),
    };
    let mut missing: Vec<String> = orders.iter().filter_map(|o| o.of_loop.clone()).collect();
    let Func { kernels, vars, .. } = func;
    for kernel in kernels.iter_mut() {
        each_pipelined(&mut kernel.body, &mut |index, spec| {
            let index = &vars[index].name;
            missing.retain(|name| name != index);
            if orders.is_empty() || orders.iter().any(|o| o.is_for(index)) {
                spec.schedule.get_or_insert_with(|| asked.to_string());
            }
        });
    }
    missing
}

fn each_pipelined(block: &mut [Stmt], f: &mut impl FnMut(Var, &mut PipelineSpec)) {
    for stmt in block {
        if let StmtKind::For(l) = &mut stmt.kind
            && let LoopKind::Pipelined(spec) = &mut l.kind
            && spec.stages > 0
        {
            f(l.axes[0].var, spec);
        }
        for child in child_blocks_mut(stmt) {
            each_pipelined(child, f);
        }
    }
}
