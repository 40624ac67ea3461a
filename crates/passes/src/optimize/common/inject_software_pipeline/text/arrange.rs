//! What an order's words mean in a loop.

use tilewright_ir::{Func, Stmt, StmtKind};

use super::print::entry_text;
use super::{EntryText, OrderText, Stream};
use crate::optimize::common::inject_software_pipeline::arrangement::{
    Arrangement, Cluster, Entry, Part, label,
};
use crate::optimize::common::inject_software_pipeline::pieces::Pieces;
use crate::optimize::common::inject_software_pipeline::schedules::{Question, Why};

/// The pieces of a loop as an order places them.
pub fn arrange(order: &OrderText, question: Question<'_>) -> Result<Arrangement, Why> {
    let pieces = question.pieces;
    let named = Named::of(question.func, pieces);
    let mut clusters = Vec::new();
    for written in &order.clusters {
        let mut cluster = Cluster {
            meet: written.bar,
            priority: written.priority,
            ..Cluster::new(written.name.clone())
        };
        for entry in &written.entries {
            cluster.entries.push(named.find(entry)?);
        }
        clusters.push(cluster);
    }
    for entry in clusters.iter().flat_map(|c| &c.entries) {
        let steps = pieces.list[entry.piece].steps.as_ref();
        if let (Some(_), Some(steps), Some(split)) = (entry.part, steps, order.split)
            && steps.count != split
        {
            let count = steps.count;
            let why = format!("the product has {count} steps along K, the order is for {split}");
            return Err(why.into());
        }
    }
    Ok(Arrangement {
        spare: order.spare,
        producer: order.stream == Stream::Producer,
        lag: match order.stream {
            Stream::Halves { lag } => lag,
            Stream::All | Stream::Producer => 0,
        },
        ..Arrangement::new(clusters)
    })
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
    /// In the order of the body, with how many steps there are.
    all: Vec<(String, Called, u32)>,
}

impl Named {
    pub fn of(func: &Func, pieces: &Pieces) -> Named {
        let mut all = Vec::new();
        for (at, piece) in pieces.list.iter().enumerate() {
            all.push((label(func, &piece.stmt), Called::Whole(at), 1));
            let Some(steps) = &piece.steps else {
                continue;
            };
            for (op, micro) in steps.ops.iter().enumerate() {
                let stmt = Stmt::new(StmtKind::Micro(micro.clone()), piece.stmt.span);
                all.push((label(func, &stmt), Called::Op(at, op), steps.count));
            }
        }
        Named { all }
    }

    /// The name, and which of those that are called so.
    pub fn name(&self, called: Called) -> (String, u32) {
        let Some(at) = self.all.iter().position(|(_, c, _)| *c == called) else {
            return (String::new(), 0);
        };
        let label = &self.all[at].0;
        let alike = self.all[..at]
            .iter()
            .filter(|(l, c, _)| l == label && is_op(*c) == is_op(called));
        (label.clone(), 1 + alike.count() as u32)
    }

    fn find(&self, entry: &EntryText) -> Result<Entry, Why> {
        let opened = entry.step.is_some();
        let alike = self.all.iter();
        let mut alike = alike.filter(|(l, c, _)| *l == entry.label && is_op(*c) == opened);
        let nth = (entry.ordinal as usize).checked_sub(1);
        let found = nth.and_then(|nth| alike.nth(nth));
        let Some((_, called, _)) = found.filter(|f| entry.step.is_none_or(|s| s < f.2)) else {
            let mut known: Vec<String> = Vec::new();
            for (label, called, _) in &self.all {
                let text = match called {
                    Called::Whole(_) => format!("`{label}`"),
                    Called::Op(..) => format!("`{label}[k…]`"),
                };
                if !known.contains(&text) {
                    known.push(text);
                }
            }
            let (text, known) = (entry_text(entry), known.join(", "));
            return Err(format!("it has no `{text}`; its pieces are {known}").into());
        };
        let part = |op: usize| entry.step.map(|step| Part { step, op });
        Ok(match *called {
            Called::Whole(piece) => Entry::whole(piece, entry.ahead),
            Called::Op(piece, op) => Entry {
                piece,
                part: part(op),
                ahead: entry.ahead,
            },
        })
    }
}

fn is_op(called: Called) -> bool {
    matches!(called, Called::Op(..))
}
