//! The named schedules: one table.
//!
//! A schedule is an order as text for all loops of a kind (`table.order`), and what says whether a loop is
//! one of them, or why not. It writes no wait, barrier, version, prologue or epilogue: those are derived
//! from the order ([`super::derive`]).

mod applies;
mod orders;
mod producer_consumer;
pub(super) mod select;

use std::borrow::Cow;

use tilewright_ir::visit::{child_blocks_mut, walk_stmts};
use tilewright_ir::{
    Func, Kernel, Loop, LoopKind, Machine, PipelineSpec, Span, Stmt, StmtKind, Var,
};

use super::arrangement::Arrangement;
use super::pieces::Pieces;
use super::split::Splits;
use super::text::{self, OfLoop, is_text, parse};

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
    /// The pieces in parts.
    pub splits: &'a Splits,
}

/// A schedule by its name.
#[derive(Clone, Copy, Debug)]
pub struct NamedSchedule {
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    how: How,
    /// For which loops it is tried that ask for none.
    tried: Option<Applies>,
}

/// Whether something is for a loop, or why not.
type Applies = fn(Question<'_>) -> Result<(), Why>;

/// How a schedule makes an order of a loop.
#[derive(Clone, Copy, Debug)]
enum How {
    /// By its text, for loops of which this holds.
    Written(Applies),
    /// By the rows of [`select`].
    Selected,
}

impl NamedSchedule {
    /// The order of a loop, or why the schedule does not apply.
    pub(super) fn arrange(&self, question: Question<'_>) -> Result<Arrangement, Why> {
        let How::Written(applies) = self.how else {
            return select::arrange(question);
        };
        applies(question)?;
        match orders::order(self.name) {
            Ok(Some(order)) => text::arrange(order, question),
            Ok(None) => Err("it has no text".into()),
            Err(mistake) => Err(mistake.message.clone().into()),
        }
    }

    /// The same of a loop that asks for no schedule; none where it is only for who asks for it.
    pub(super) fn try_for(&self, question: Question<'_>) -> Option<Result<Arrangement, Why>> {
        let tried = self.tried?;
        Some(tried(question).and_then(|()| self.arrange(question)))
    }

    /// Whether it is tried where a loop asks for none.
    pub fn is_tried(&self) -> bool {
        self.tried.is_some()
    }

    /// Whether it takes one of the others by its rows.
    pub(super) fn selects(&self) -> bool {
        matches!(self.how, How::Selected)
    }

    /// The order as text, where it is no choice between others.
    pub fn text(&self) -> Option<&'static str> {
        orders::text(self.name)
    }
}

/// Every schedule. Of those that cost the same the first is taken.
pub const SCHEDULES: &[NamedSchedule] = &[
    NamedSchedule {
        name: "plain",
        about: "copies first, then the rest of the body as it was written",
        how: How::Written(applies::always),
        tried: Some(applies::always),
    },
    NamedSchedule {
        name: "late_wait",
        about: "the same, with a barrier before the first use of what was copied, so that the wait \
                for it leaves newer copies in flight",
        how: How::Written(applies::always),
        tried: Some(applies::always),
    },
    NamedSchedule {
        name: "read_ahead",
        about: "operands of a product are read one step along K ahead of the matrix instructions, \
                into registers of their own",
        how: How::Written(applies::reads_ahead),
        tried: Some(applies::always),
    },
    NamedSchedule {
        name: "in_flight",
        about: "the plain order with a version to spare, so that the product of the iteration \
                before runs while the block meets and copies are issued",
        how: How::Written(applies::products_in_flight),
        tried: Some(applies::always),
    },
    NamedSchedule {
        name: "ping_pong",
        about: "one half of the block's waves reads the operands of a step along K while the other \
                half multiplies, one cluster apart",
        how: How::Written(applies::two_halves),
        tried: Some(applies::always),
    },
    NamedSchedule {
        name: "products_together",
        about: "two products, the second of which needs the first: the second and the first of the next \
                iteration together, and what stands between them beside the products of the other half",
        how: How::Written(applies::chained_halves),
        tried: Some(applies::always),
    },
    NamedSchedule {
        name: "producer_consumer",
        about: "a thread of a warp group more has the copy engine bring the tiles, the others \
                multiply; arrival barriers hand the tiles over",
        how: How::Written(producer_consumer::applies),
        tried: Some(applies::always),
    },
    NamedSchedule {
        name: "block_pingpong",
        about: "the one of the orders below that the rules of Triton's pass of this name take for \
                the loop: `--explain schedule` prints them",
        how: How::Selected,
        tried: Some(applies::always),
    },
    NamedSchedule {
        name: "one_cluster",
        about: "reads and loads in turn, then the product, each issued first; the waves of two \
                blocks alternate by themselves",
        how: How::Written(applies::always),
        tried: None,
    },
    NamedSchedule {
        name: "two_clusters",
        about: "halves of the block a cluster apart: all reads, and the product in two slices along K",
        how: How::Written(applies::always),
        tried: None,
    },
    NamedSchedule {
        name: "four_clusters",
        about: "halves of the block a cluster apart: the product in four slices along K",
        how: How::Written(applies::always),
        tried: None,
    },
    NamedSchedule {
        name: "reads_and_all",
        about: "halves of the block a cluster apart: reads and a copy, then a copy and the product",
        how: How::Written(applies::always),
        tried: None,
    },
    NamedSchedule {
        name: "copies_and_all",
        about: "halves of the block a cluster apart: copies, then reads and the product",
        how: How::Written(applies::always),
        tried: None,
    },
    NamedSchedule {
        name: "chained_products",
        about: "two products, the second of which needs the first, and the copies and reads of one \
                beside the other; memory is issued first",
        how: How::Written(applies::always),
        tried: None,
    },
    NamedSchedule {
        name: "four_stages",
        about: "all waves together, a step along K and a half of the columns at a time, copies in \
                parts behind the reads of each",
        how: How::Written(applies::always),
        tried: None,
    },
    NamedSchedule {
        name: "half_tiles",
        about: "halves of the block a cluster apart: a quadrant of C at a time, and copies of half tiles, \
                three quarters of them two iterations ahead in two versions",
        how: How::Written(applies::copied_by_waves),
        tried: Some(applies::is_long),
    },
    NamedSchedule {
        name: "between_products",
        about: "a quadrant of C at a time, with the copies and reads of later ones between its matrix \
                instructions, one by one",
        how: How::Written(applies::copied_by_waves),
        tried: Some(applies::is_long),
    },
    NamedSchedule {
        name: "two_products",
        about: "two products of an iteration, each with a cluster of its reads, halves of the block \
                a cluster apart",
        how: How::Written(applies::always),
        tried: None,
    },
];

/// The schedule of this name.
pub fn find_schedule(name: &str) -> Option<&'static NamedSchedule> {
    SCHEDULES.iter().find(|s| s.name == name)
}

/// The parts along M and N that what a loop over `index` asks for takes products into, where parts of
/// tiles are brought for them: a part of a tile then serves all waves.
pub fn parts_asked(asked: &str, index: &str) -> [u32; 2] {
    let written = match is_text(asked) {
        true => parse(asked).unwrap_or_default(),
        false => Vec::new(),
    };
    let named = || orders::order(asked).ok().flatten();
    let order = written.iter().find(|o| o.is_for(index)).or_else(named);
    let order = order.filter(|order| order.brings_parts());
    order.map_or([1, 1], |order| [order.m, order.n])
}

/// Whether a loop is so long, or may be, that what several iterations take ahead of it and behind it does
/// not count by itself. Who does not know how often a loop runs does not write it for a few iterations.
pub fn is_long(l: &Loop) -> bool {
    const LONG: u64 = 8;
    let trips = l.axes[0].const_trip_count();
    trips.is_none_or(|trips| trips >= LONG)
}

/// The parts along M and N of the schedules that bring parts of tiles and are tried where a loop asks for
/// none: the most of each.
pub fn parts_tried() -> [u32; 2] {
    let orders = SCHEDULES.iter().filter(|s| s.is_tried());
    let orders = orders.filter_map(|s| orders::order(s.name).ok().flatten());
    let mut parts = [1, 1];
    for order in orders.filter(|order| order.brings_parts()) {
        parts = [parts[0].max(order.m), parts[1].max(order.n)];
    }
    parts
}

/// Asks for a schedule, by its name or as orders, for every pipelined loop that asks for none itself;
/// orders are for the loops that they name. Gives those that are none of the pipelined ones.
pub fn ask_for_schedule(func: &mut Func, asked: &str) -> Vec<OfLoop> {
    let orders = match is_text(asked) {
        true => parse(asked).unwrap_or_default(),
        false => Vec::new(),
    };
    let mut missing: Vec<OfLoop> = orders.iter().filter_map(|o| o.of_loop.clone()).collect();
    let Func { kernels, vars, .. } = func;
    for kernel in kernels.iter_mut() {
        each_pipelined(&mut kernel.body, &mut |index, spec| {
            let index = &vars[index].name;
            missing.retain(|of| of.name != *index);
            if orders.is_empty() || orders.iter().any(|o| o.is_for(index)) {
                spec.schedule.get_or_insert_with(|| asked.to_string());
            }
        });
    }
    missing
}

/// Loops that orders in the function are for and that it has not, with the loop that has the orders.
pub(super) fn missing(func: &Func) -> Vec<(Span, OfLoop)> {
    let mut known: Vec<&str> = Vec::new();
    let mut orders: Vec<(Span, OfLoop)> = Vec::new();
    for kernel in &func.kernels {
        walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::For(l) = &stmt.kind
                && let LoopKind::Pipelined(spec) = &l.kind
            {
                known.push(&func.vars[l.axes[0].var].name);
                let text = spec.schedule.as_deref().filter(|asked| is_text(asked));
                let own = text.and_then(|text| parse(text).ok()).unwrap_or_default();
                // Where none is for this loop that is said of it.
                let index = &func.vars[l.axes[0].var].name;
                if own.iter().any(|order| order.is_for(index)) {
                    let own = own.into_iter().filter_map(|order| order.of_loop);
                    orders.extend(own.map(|of| (stmt.span, of)));
                }
            }
        });
    }
    orders.retain(|(_, of)| !known.contains(&of.name.as_str()));
    orders
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
