//! Orders as text: what is printed can be given back.
//!
//! ```text
//! schedule ping_pong for k
//! split k 2
//! stream halves lag 1
//!   cluster r0 bar { g2s A_shared ahead 1; s2r A_shared[k0]; g2s B_shared ahead 1; s2r B_shared[k0] }
//!   cluster m0 bar prio 1 { mma C_local[k0] }
//!   cluster r1 bar { s2r A_shared[k1], B_shared[k1] }
//!   cluster m1 bar prio 1 { mma C_local[k1] }
//! ```
//!
//! - `schedule NAME` begins an order; `for VAR` says which loop it is for, else it is for all.
//! - `split m 2, n 2, k 4`: products are taken into so many parts along M and N, and have so many steps
//!   along K; `[m0,k1]` names what belongs to a part and a step.
//! - `split p 2`: copies that run by themselves are in so many parts, `g2s A_shared[p1]`.
//! - `stream all`: all waves run together. `stream halves lag 1`: the second half of the waves is one
//!   barrier behind. `stream producer`: what runs ahead is the part of a thread of its own.
//! - `spare N`: so many versions more of what is copied than the order needs. `spare 1 taken from 3`: where
//!   that leaves room for fewer blocks, copies that run 3 iterations ahead or more run one less.
//! - `cluster NAME`: pieces in order. `bar` demands a barrier before it, `prio N` gives its
//!   instructions a priority, `woven` spreads the instructions of its pieces between each other.
//! - A piece is an op and the buffer it is about, `ahead N` iterations; where several are called the
//!   same, `(2)` behind the name is the second.
//! - `bring A`, `store A`, `read A[k0]`, `multiply C[k0]` call pieces by their part in the loop's product:
//!   see [`parts`].
//! - `planned [bar] [until use]` stands for clusters of all pieces that have no other place: see
//!   [`planned`]. `rounds N { … }` for clusters of each part of the product: see [`rounds`].
//! - `#` begins a comment.
//!
//! Waits, versions, prologue, epilogue and the barriers that an order needs are not written: they are
//! derived.

mod arrange;
mod parse;
mod parts;
mod planned;
mod print;
mod rounds;
mod spare;

pub(super) use arrange::arrange;
pub use parse::{Mistake, parse};
pub(super) use parts::Products;
pub(super) use print::print;
pub(super) use rounds::Multiplies;

/// An order as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderText {
    pub name: String,
    /// The loop that it is for.
    pub of_loop: Option<OfLoop>,
    /// Parts of products along M and N.
    pub m: u32,
    pub n: u32,
    /// Parts of copies.
    pub p: u32,
    /// Steps of products along K.
    pub k: Option<u32>,
    pub stream: Stream,
    pub spare: u32,
    /// From so many iterations ahead on a spare version is one of those that copies run ahead by, where
    /// another would leave room for fewer blocks.
    pub taken_from: Option<u32>,
    pub items: Vec<Item>,
}

impl OrderText {
    /// Whether it is for the loop of this variable.
    pub fn is_for(&self, index: &str) -> bool {
        self.of_loop.as_ref().is_none_or(|of| of.name == index)
    }

    /// Whether parts of tiles are brought for parts of products: quadrants of a product are multiplied by
    /// themselves, or parts of a copy run ahead by different numbers of iterations.
    pub fn brings_parts(&self) -> bool {
        if self.m > 1 && self.n > 1 && self.p > 1 {
            return true;
        }
        let clusters = self.items.iter().filter_map(|item| match item {
            Item::Cluster(cluster) => Some(&cluster.entries),
            Item::Planned(_) | Item::Rounds(_) => None,
        });
        let parts: Vec<&EntryText> = clusters.flatten().filter(|e| e.p.is_some()).collect();
        let differs = |a: &EntryText, b: &EntryText| a.label == b.label && a.ahead != b.ahead;
        parts.iter().any(|a| parts.iter().any(|b| differs(a, b)))
    }
}

/// A loop, by its variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfLoop {
    pub name: String,
    /// Where the text has it: bytes `start .. end`.
    pub start: usize,
    pub end: usize,
}

/// Who runs the clusters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    All,
    /// The second half of the waves is so many barriers behind.
    Halves {
        lag: u32,
    },
    /// What runs ahead is the part of a thread of its own.
    Producer,
}

/// What an order is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    Cluster(ClusterText),
    Planned(PlannedText),
    Rounds(RoundsText),
}

/// The pieces that have no other place, as they were planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedText {
    pub bar: bool,
    /// Only those before the first that uses what was copied.
    pub until_use: bool,
}

/// Clusters for each part of the loop's product.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoundsText {
    /// A product of fewer steps along K is taken into parts along M.
    pub least: u32,
    pub clusters: Vec<RoundCluster>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoundCluster {
    pub name: String,
    pub bar: bool,
    pub priority: u8,
    pub paired: bool,
    pub entries: Vec<RoundEntry>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoundEntry {
    Read,
    ReadNext,
    Multiply,
    BringFirst,
    BringSpread,
    StoreLast,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterText {
    pub name: String,
    pub bar: bool,
    pub priority: u8,
    /// Whether the instructions of its pieces stand between each other.
    pub woven: bool,
    pub entries: Vec<EntryText>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryText {
    /// `s2r A_shared`.
    pub label: String,
    /// Which of those that are called so, from 1.
    pub ordinal: u32,
    /// The part along M and N, and the step along K.
    pub m: Option<u32>,
    pub n: Option<u32>,
    pub k: Option<u32>,
    /// The part of a copy.
    pub p: Option<u32>,
    pub ahead: u32,
}

/// Whether what a loop asks for is an order and not the name of one.
pub fn is_text(asked: &str) -> bool {
    asked.contains(char::is_whitespace)
}
