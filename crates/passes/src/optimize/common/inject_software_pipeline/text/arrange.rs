//! What an order's words mean in a loop.

use tilewright_ir::{Func, Stmt, StmtKind};

use super::parts::Products;
use super::planned::Planned;
use super::print::entry_text;
use super::{ClusterText, EntryText, Item, OrderText, Stream, rounds, spare};
use crate::optimize::common::inject_software_pipeline::arrangement::{
    Arrangement, Cluster, Entry, Part, label, place,
};
use crate::optimize::common::inject_software_pipeline::pieces::Pieces;
use crate::optimize::common::inject_software_pipeline::schedules::{Question, Why};
use crate::optimize::common::inject_software_pipeline::split::Split;
use crate::optimize::common::inject_software_pipeline::steps::Within;

/// The pieces of a loop as an order places them.
pub fn arrange(order: &OrderText, question: Question<'_>) -> Result<Arrangement, Why> {
    let mut split = Split {
        m: order.m,
        n: order.n,
        p: order.p,
    };
    for item in &order.items {
        if let Item::Rounds(rounds) = item
            && split == Split::NONE
        {
            split = rounds::split(rounds, question)?;
        }
    }
    let pieces = question.splits.of(split, question.func, question.pieces)?;
    let question = Question {
        pieces: &pieces,
        ..question
    };
    let mut words = Words::of(order, question);
    let written = order.items.iter().map(|item| words.clusters(item));
    let written: Result<Vec<Vec<Cluster>>, Why> = written.collect();
    let written = written?;
    let mut planned = Planned::of(question);
    for clusters in &written {
        clusters.iter().for_each(|c| planned.without(&c.entries));
    }
    let mut clusters: Vec<Cluster> = Vec::new();
    for (item, own) in order.items.iter().zip(written) {
        match item {
            Item::Planned(text) => clusters.extend(planned.clusters(text)?),
            Item::Cluster(_) | Item::Rounds(_) => clusters.extend(own),
        }
    }
    // What an order has for some loops only may be nothing in this one.
    clusters.retain(|c| !c.entries.is_empty());
    words.check_steps(&clusters)?;
    let mut arrangement = Arrangement {
        spare: order.spare,
        producer: order.stream == Stream::Producer,
        lag: match order.stream {
            Stream::Halves { lag } => lag,
            Stream::All | Stream::Producer => 0,
        },
        split,
        ..Arrangement::new(clusters)
    };
    if let Some(deep) = order.taken_from {
        spare::take(&mut arrangement, question, deep)?;
    }
    Ok(arrangement)
}

/// The words of an order in a loop.
struct Words<'a> {
    order: &'a OrderText,
    question: Question<'a>,
    named: Named,
    products: Products<'a>,
    /// What was called by its part in the products.
    by_part: Vec<Entry>,
}

impl<'a> Words<'a> {
    fn of(order: &'a OrderText, question: Question<'a>) -> Words<'a> {
        let Question { func, pieces, .. } = question;
        Words {
            order,
            question,
            named: Named::of(func, pieces),
            products: Products::of(func, pieces),
            by_part: Vec::new(),
        }
    }

    /// The clusters of an item, but for pieces that have no place of their own.
    fn clusters(&mut self, item: &Item) -> Result<Vec<Cluster>, Why> {
        match item {
            Item::Cluster(written) => self.cluster(written).map(|cluster| vec![cluster]),
            Item::Rounds(written) => {
                let clusters = rounds::clusters(written, self.question)?;
                let entries = clusters.iter().flat_map(|c| &c.entries);
                self.by_part.extend(entries);
                Ok(clusters)
            }
            Item::Planned(_) => Ok(Vec::new()),
        }
    }

    fn cluster(&mut self, written: &ClusterText) -> Result<Cluster, Why> {
        let mut cluster = Cluster {
            meet: written.bar,
            priority: written.priority,
            woven: written.woven,
            ..Cluster::new(written.name.clone())
        };
        for entry in &written.entries {
            let Some(placed) = self.products.entries(entry, self.order) else {
                cluster.entries.push(self.named.find(entry)?);
                continue;
            };
            // A tile of two products is brought for the first.
            for own in placed? {
                let again = own.part.is_none() && self.by_part.contains(&own);
                cluster.entries.extend((!again).then_some(own));
                self.by_part.push(own);
            }
        }
        Ok(cluster)
    }

    /// Whether products have the steps that the order is written for.
    fn check_steps(&self, clusters: &[Cluster]) -> Result<(), Why> {
        for entry in clusters.iter().flat_map(|c| &c.entries) {
            let steps = self.question.pieces.list[entry.piece].steps.as_ref();
            if let (Some(_), Some(steps), Some(wanted)) = (entry.part, steps, self.order.k)
                && !self.by_part.contains(entry)
                && steps.along_k(0).is_some()
                && steps.count != wanted
            {
                let count = steps.count;
                let why =
                    format!("the product has {count} steps along K, the order is for {wanted}");
                return Err(why.into());
            }
        }
        Ok(())
    }
}

/// What can be called by a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    /// A piece.
    Whole(usize),
    /// An op of the steps of a piece.
    Op(usize, usize),
}

/// What the pieces of a loop are called.
pub(super) struct Named {
    /// In the order of the body.
    all: Vec<Name>,
}

struct Name {
    label: String,
    within: Within,
    called: Called,
    /// How many steps have it.
    steps: u32,
}

impl Name {
    /// Whether it is called the same but for its number.
    fn is_like(&self, other: &Name) -> bool {
        let is_op = |name: &Name| matches!(name.called, Called::Op(..));
        self.label == other.label && self.within == other.within && is_op(self) == is_op(other)
    }
}

impl Named {
    pub fn of(func: &Func, pieces: &Pieces) -> Named {
        let mut all = Vec::new();
        for (at, piece) in pieces.list.iter().enumerate() {
            all.push(Name {
                label: label(func, &piece.stmt),
                within: Within::default(),
                called: Called::Whole(at),
                steps: 1,
            });
            let Some(steps) = &piece.steps else {
                continue;
            };
            for (op, micro) in steps.ops.iter().enumerate() {
                let stmt = Stmt::new(StmtKind::Micro(micro.clone()), piece.stmt.span);
                all.push(Name {
                    label: label(func, &stmt),
                    within: steps.within[op],
                    called: Called::Op(at, op),
                    steps: steps.count,
                });
            }
        }
        Named { all }
    }

    /// The name, and which of those that are called so.
    pub fn name(&self, called: Called) -> (String, u32) {
        let Some(at) = self.all.iter().position(|name| name.called == called) else {
            return (String::new(), 0);
        };
        let own = &self.all[at];
        let alike = self.all[..at].iter().filter(|other| other.is_like(own));
        (own.label.clone(), 1 + alike.count() as u32)
    }

    /// Where it is in its product.
    pub fn within(&self, called: Called) -> Within {
        let own = self.all.iter().find(|name| name.called == called);
        own.map_or_else(Within::default, |name| name.within)
    }

    fn find(&self, entry: &EntryText) -> Result<Entry, Why> {
        let within = Within {
            m: entry.m,
            n: entry.n,
            p: entry.p,
        };
        let opened = entry.k.is_some() || within != Within::default();
        let is_it = |name: &&Name| {
            let is_op = matches!(name.called, Called::Op(..));
            let step = entry.k.map_or(name.steps == 1, |k| k < name.steps);
            name.label == entry.label && name.within == within && is_op == opened && step
        };
        let nth = (entry.ordinal as usize).checked_sub(1);
        let found = nth.and_then(|nth| self.all.iter().filter(is_it).nth(nth));
        let Some(name) = found else {
            let mut known: Vec<String> = Vec::new();
            for name in &self.all {
                let text = match name.called {
                    Called::Whole(_) => format!("`{}`", name.label),
                    Called::Op(..) => format!("`{}{}`", name.label, place(name.within, Some(0))),
                };
                if !known.contains(&text) {
                    known.push(text);
                }
            }
            let (text, known) = (entry_text(entry), known.join(", "));
            return Err(format!("it has no `{text}`; its pieces are {known}").into());
        };
        Ok(match name.called {
            Called::Whole(piece) => Entry::whole(piece, entry.ahead),
            Called::Op(piece, op) => Entry {
                piece,
                part: Some(Part {
                    step: entry.k.unwrap_or(0),
                    op,
                }),
                ahead: entry.ahead,
            },
        })
    }
}
