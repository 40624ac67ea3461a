//! The named schedules: one table.
//!
//! A schedule is an order as text for all loops of a kind ([`orders`]), or, where what it does depends on
//! more of the loop than such a text can say, a function from the pieces of a loop and the machine to
//! an [`Arrangement`]: the pieces, or parts of them, in clusters, each with how many iterations ahead
//! it runs. Or it says why it does not apply. It writes no wait, barrier, version, prologue or
//! epilogue: those are derived from the order ([`super::derive`]).

mod in_flight;
mod late_wait;
mod multiplies;
mod orders;
mod ping_pong;
mod plain;
mod producer_consumer;
mod read_ahead;
pub(super) mod select;

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
    how: How,
    /// Whether it is tried where a loop asks for none.
    pub(super) tried: bool,
}

/// How a schedule makes an order of a loop.
#[derive(Clone, Copy, Debug)]
enum How {
    Made(fn(Question<'_>) -> Result<Arrangement, Why>),
    Written(&'static str),
    /// By the rows of [`select`].
    Selected,
}

impl NamedSchedule {
    /// The order of a loop, or why the schedule does not apply.
    pub(super) fn arrange(&self, question: Question<'_>) -> Result<Arrangement, Why> {
        match self.how {
            How::Made(arrange) => arrange(question),
            How::Written(text) => orders::arrange(text, question),
            How::Selected => select::arrange(question),
        }
    }

    /// Whether it takes one of the others by its rows.
    pub(super) fn selects(&self) -> bool {
        matches!(self.how, How::Selected)
    }

    /// The order as text, where it is one for all loops of a kind.
    pub fn text(&self) -> Option<&'static str> {
        match self.how {
            How::Made(_) | How::Selected => None,
            How::Written(text) => Some(text),
        }
    }
}

/// Every schedule. Of those that cost the same the first is taken.
pub const SCHEDULES: &[NamedSchedule] = &[
    NamedSchedule {
        name: "plain",
        about: "copies first, then the rest of the body as it was written",
        how: How::Made(plain::arrange),
        tried: true,
    },
    NamedSchedule {
        name: "late_wait",
        about: "the same, with a barrier before the first use of what was copied, so that the wait \
                for it leaves newer copies in flight",
        how: How::Made(late_wait::arrange),
        tried: true,
    },
    NamedSchedule {
        name: "read_ahead",
        about: "operands of a product are read one step along K ahead of the matrix instructions, \
                into registers of their own",
        how: How::Made(read_ahead::arrange),
        tried: true,
    },
    NamedSchedule {
        name: "in_flight",
        about: "the plain order with a version to spare, so that the product of the iteration \
                before runs while the block meets and copies are issued",
        how: How::Made(in_flight::arrange),
        tried: true,
    },
    NamedSchedule {
        name: "ping_pong",
        about: "one half of the block's waves reads the operands of a step along K while the other \
                half multiplies, one cluster apart",
        how: How::Made(ping_pong::arrange),
        tried: true,
    },
    NamedSchedule {
        name: "producer_consumer",
        about: "a thread of a warp group more has the copy engine bring the tiles, the others \
                multiply; arrival barriers hand the tiles over",
        how: How::Made(producer_consumer::arrange),
        tried: true,
    },
    NamedSchedule {
        name: "block_pingpong",
        about: "the one of the orders below that the rules of Triton's pass of this name take for \
                the loop: `--explain schedule` prints them",
        how: How::Selected,
        tried: true,
    },
    NamedSchedule {
        name: "one_cluster",
        about: "reads and loads in turn, then the product, each issued first; the waves of two \
                blocks alternate by themselves",
        how: How::Written(orders::ONE_CLUSTER),
        tried: false,
    },
    NamedSchedule {
        name: "two_clusters",
        about: "halves of the block a cluster apart: all reads, and the product in two slices along K",
        how: How::Written(orders::TWO_CLUSTERS),
        tried: false,
    },
    NamedSchedule {
        name: "four_clusters",
        about: "halves of the block a cluster apart: the product in four slices along K",
        how: How::Written(orders::FOUR_CLUSTERS),
        tried: false,
    },
    NamedSchedule {
        name: "reads_and_all",
        about: "halves of the block a cluster apart: reads and a copy, then a copy and the product",
        how: How::Written(orders::READS_AND_ALL),
        tried: false,
    },
    NamedSchedule {
        name: "copies_and_all",
        about: "halves of the block a cluster apart: copies, then reads and the product",
        how: How::Written(orders::COPIES_AND_ALL),
        tried: false,
    },
    NamedSchedule {
        name: "chained_products",
        about: "two products, the second of which needs the first, and the copies and reads of one \
                beside the other; memory is issued first",
        how: How::Written(orders::CHAINED_PRODUCTS),
        tried: false,
    },
    NamedSchedule {
        name: "four_stages",
        about: "all waves together, a step along K and a half of the columns at a time, copies in \
                parts behind the reads of each",
        how: How::Written(orders::FOUR_STAGES),
        tried: false,
    },
    NamedSchedule {
        name: "two_products",
        about: "two products of an iteration, each with a cluster of its reads, halves of the block \
                a cluster apart",
        how: How::Written(orders::TWO_PRODUCTS),
        tried: false,
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
