//! When the statements of a loop run: as the user's turns say, or as is found here.

use tilewright_ir::{Block, Buffer, Code, Diagnostic, Func, Span, Turn};
use tilewright_schedule::footprint::Meeting;
use tilewright_schedule::order::{Completion, OrderError, Tail, derive};

use super::super::order_of::{Placed, order_of};
use super::ahead::{Ahead, Item};

const PIPELINE_ORDER: Code = Code("pipeline-order");

/// For each statement that takes a turn its place in a steady iteration, and how far ahead it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Turns {
    pub place: Vec<usize>,
    pub distance: Vec<u32>,
}

impl Turns {
    /// Copies first, then the rest, each in program order.
    pub fn automatic(ahead: &Ahead, stages: u32) -> Turns {
        let n = ahead.early.len();
        let mut sequence: Vec<usize> = (0..n).collect();
        sequence.sort_unstable_by_key(|&i| (!ahead.early[i], i));
        let far = stages.saturating_sub(1);
        let distance = ahead.early.iter().map(|&e| if e { far } else { 0 });
        Turns {
            place: places(&sequence),
            distance: distance.collect(),
        }
    }

    /// As the user's turns say; what they leave open is chosen.
    pub fn of_user(items: &[Item<'_>], ahead: &Ahead, stages: u32) -> Turns {
        let n = items.len();
        let turns = items.iter().map(|item| item.stmt.turn.unwrap_or_default());
        let turns: Vec<Turn> = turns.collect();
        let deepest = turns.iter().filter_map(|t| t.stage).max().unwrap_or(0);
        let given = turns.iter().map(|t| t.stage.map_or(0, |s| deepest - s));
        let mut distance: Vec<u32> = given.collect();
        let far = stages.saturating_sub(1);
        for item in (0..n).rev() {
            if turns[item].stage.is_some() {
                continue;
            }
            // As far ahead as its nearest user, and as many stages more.
            let users = (0..n).filter(|&u| {
                let mut writes = items[item].effects.writes.iter();
                u != item && writes.any(|b| items[u].effects.reads.contains(b))
            });
            let needed = users.map(|u| distance[u]).max().unwrap_or(0);
            distance[item] = needed + if ahead.early[item] { far } else { 0 };
        }
        // Places of the user keep their order; an early statement goes to the front, any other
        // stays behind the statement before it.
        let mut key: Vec<Option<u32>> = Vec::with_capacity(n);
        for (turn, early) in turns.iter().zip(&ahead.early) {
            let before = key.last().copied().flatten();
            key.push(turn.order.or(before.filter(|_| !early)));
        }
        let mut sequence: Vec<usize> = (0..n).collect();
        sequence.sort_unstable_by_key(|&i| (key[i], i));
        Turns {
            place: places(&sequence),
            distance,
        }
    }

    /// Gives the statements of the body their turns.
    pub fn store(&self, body: &mut Block) {
        let deepest = self.distance.iter().copied().max().unwrap_or(0);
        let takers = body.iter_mut().filter(|stmt| stmt.takes_turn());
        for (at, stmt) in takers.enumerate() {
            stmt.turn = Some(Turn {
                stage: Some(deepest - self.distance[at]),
                order: Some(self.place[at] as u32),
            });
        }
    }

    /// Whether this order computes what the loop means.
    pub fn check(
        &self,
        func: &Func,
        items: &[Item<'_>],
        versioned: &[Buffer],
        span: Span,
    ) -> Result<(), Box<Diagnostic>> {
        let mut sequence: Vec<usize> = (0..items.len()).collect();
        sequence.sort_unstable_by_key(|&i| (self.place[i], i));
        let placed = sequence.iter().map(|&i| Placed {
            effects: &items[i].effects,
            distance: self.distance[i],
            completion: Completion::Sync,
            program: i,
        });
        let placed: Vec<Placed<'_>> = placed.collect();
        let (order, buffers) = order_of(func, &placed, versioned, Tail::Guard);
        let error = match derive(&order, &|_, _, _, _| Meeting::InThread) {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        let (resource, message, pair) = match error {
            OrderError::Breaks {
                earlier,
                later,
                resource,
                iterations,
            } => {
                let (a, b) = (sequence[earlier], sequence[later]);
                let when = match iterations {
                    0 => "in the same iteration".to_string(),
                    1 => "of the iteration before".to_string(),
                    n => format!("of {n} iterations before"),
                };
                let message = format!(
                    "statement {b} of the body needs statement {a} {when} to be done, and would run first"
                );
                (resource, message, Some((a, b)))
            }
            OrderError::RegisterVersions { resource, versions } => {
                let message =
                    format!("{versions} iterations would need the same registers at one time");
                (resource, message, None)
            }
        };
        let name = &func.buffers[buffers[resource]].name;
        let mut error = Diagnostic::error(PIPELINE_ORDER, span, message);
        if let Some((a, b)) = pair {
            error = error
                .also(
                    items[a].stmt.span,
                    format!("statement {a} touches `{name}`"),
                )
                .also(
                    items[b].stmt.span,
                    format!("statement {b} touches `{name}`"),
                );
        } else {
            error = error.note(format!("they are those of `{name}`"));
        }
        Err(Box::new(error.help("a statement of a later stage runs later; leave `order` and `stage` out to let the compiler choose")))
    }
}

/// The place of each statement in a sequence of them.
fn places(sequence: &[usize]) -> Vec<usize> {
    let mut place = vec![0; sequence.len()];
    for (at, &item) in sequence.iter().enumerate() {
        place[item] = at;
    }
    place
}
