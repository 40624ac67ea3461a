//! `order` and `stage`: from the user's lists, or made here.

use tilewright_ir::{Buffer, Code, Diagnostic, Func, PipelineSpec, Span};
use tilewright_schedule::footprint::Meeting;
use tilewright_schedule::order::{Completion, OrderError, Tail, derive};

use super::super::order_of::{Placed, order_of};
use super::ahead::{Ahead, Item};

pub(super) const PIPELINE_LISTS: Code = Code("pipeline-lists");
pub(super) const PIPELINE_ORDER: Code = Code("pipeline-order");

/// The place of each listed statement in a steady iteration, and how far ahead it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Lists {
    pub place: Vec<usize>,
    pub distance: Vec<u32>,
}

impl Lists {
    /// Copies first, then the rest, each in program order.
    pub fn automatic(ahead: &Ahead, stages: u32) -> Lists {
        let n = ahead.early.len();
        let mut sequence: Vec<usize> = (0..n).collect();
        sequence.sort_by_key(|&i| !ahead.early[i]);
        let far = stages.saturating_sub(1);
        let distance = ahead.early.iter().map(|&e| if e { far } else { 0 });
        Lists {
            place: places(&sequence),
            distance: distance.collect(),
        }
    }

    /// What the user's lists say; an entry of -1 leaves the statement to the compiler.
    pub fn of_user(
        spec: &PipelineSpec,
        items: &[Item<'_>],
        ahead: &Ahead,
        span: Span,
    ) -> Result<Lists, Box<Diagnostic>> {
        let n = items.len();
        let groups = groups(spec, n, span)?;
        let entries = spec.order.len();
        if entries != groups.len() || spec.stage.len() != entries {
            let what = if spec.group.is_empty() {
                format!("the body has {n} statements")
            } else {
                format!("there are {} groups", groups.len())
            };
            let lists = format!(
                "`order` has {entries} entries and `stage` has {}",
                spec.stage.len()
            );
            let help =
                "give both lists one entry for each statement, -1 where the compiler shall choose";
            return wrong(span, format!("{what}, {lists}"), help);
        }
        let mut given: Vec<i32> = spec.order.iter().copied().filter(|&p| p >= 0).collect();
        given.sort_unstable();
        if let Some((want, got)) = (0..).zip(&given).find(|(want, got)| want != *got) {
            let message = if *got < want {
                format!("two statements have place {got} in `order`")
            } else {
                format!("no statement has place {want} in `order`")
            };
            let help = format!("number the {} places from 0, each once", given.len());
            return wrong(span, message, help);
        }
        let mut order = vec![-1; n];
        let mut stage = vec![-1; n];
        for (entry, group) in groups.iter().enumerate() {
            for &member in group {
                order[member] = spec.order[entry];
                stage[member] = spec.stage[entry];
            }
        }
        let deepest = stage.iter().copied().max().unwrap_or(0).max(0);
        let mut distance: Vec<u32> = stage
            .iter()
            .map(|&s| if s < 0 { 0 } else { (deepest - s) as u32 })
            .collect();
        let far = spec.stages.saturating_sub(1);
        for item in (0..n).rev() {
            if stage[item] >= 0 {
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
        let mut key: Vec<(i32, usize)> = Vec::with_capacity(n);
        for item in 0..n {
            let place = match order[item] {
                -1 if ahead.early[item] || item == 0 => -1,
                -1 => key[item - 1].0,
                place => place,
            };
            key.push((place, item));
        }
        let mut sequence: Vec<usize> = (0..n).collect();
        sequence.sort_by_key(|&i| key[i]);
        Ok(Lists {
            place: places(&sequence),
            distance,
        })
    }

    /// Writes the lists into the loop's specification.
    pub fn store(&self, spec: &mut PipelineSpec) {
        let deepest = self.distance.iter().copied().max().unwrap_or(0);
        spec.order = self.place.iter().map(|&p| p as i32).collect();
        let stages = self.distance.iter().map(|d| (deepest - d) as i32);
        spec.stage = stages.collect();
        spec.group = Vec::new();
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
        sequence.sort_by_key(|&i| self.place[i]);
        let placed = sequence.iter().map(|&i| Placed {
            effects: &items[i].effects,
            distance: self.distance[i],
            completion: Completion::Sync,
            program: i,
        });
        let placed: Vec<Placed<'_>> = placed.collect();
        let (order, buffers) = order_of(func, &placed, versioned, Tail::Guard);
        let error = match derive(&order, &|_, _, _, _| Meeting::Nowhere) {
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

/// Lists that say nothing that can be done.
fn wrong<T>(span: Span, message: String, help: impl Into<String>) -> Result<T, Box<Diagnostic>> {
    let error = Diagnostic::error(PIPELINE_LISTS, span, message);
    Err(Box::new(error.help(help)))
}

/// The statements of each entry.
fn groups(spec: &PipelineSpec, n: usize, span: Span) -> Result<Vec<Vec<usize>>, Box<Diagnostic>> {
    if spec.group.is_empty() {
        return Ok((0..n).map(|i| vec![i]).collect());
    }
    let mut seen = vec![false; n];
    let mut groups = Vec::new();
    for group in &spec.group {
        let mut members = Vec::new();
        for &member in group {
            let known = usize::try_from(member).ok().filter(|&m| m < n);
            let Some(member) = known else {
                let message =
                    format!("`group` names statement {member}, the body has {n} statements");
                return wrong(span, message, "statements are numbered from 0");
            };
            if std::mem::replace(&mut seen[member], true) {
                let message = format!("statement {member} is in two groups");
                return wrong(span, message, "put each statement into one group");
            }
            members.push(member);
        }
        groups.push(members);
    }
    match seen.iter().position(|s| !s) {
        None => Ok(groups),
        Some(missing) => {
            let message = format!("statement {missing} is in no group");
            wrong(span, message, "put each statement into one group")
        }
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
