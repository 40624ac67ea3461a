//! `T.Pipelined`, and the user's lists of when its statements run.

use std::rc::Rc;

use tilewright_ir::{Block, LoopKind, PipelineSpec, Span, Stmt, StmtKind, Turn};

use super::CallArgs;
use super::loops::{bounds, one_dtype};
use crate::record::Recorder;
use crate::value::{LoopSpec, Value};
use crate::{Result, codes};

const WHAT: &str = "T.Pipelined";

/// Stages of a pipeline that anything could make use of.
const MAX_STAGES: i64 = 64;

pub(super) fn pipelined(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let axis = bounds(rec, args, WHAT)?;
    let axis = one_dtype(rec, axis, args.span())?;
    let stages = args.int_or(rec, "num_stages", 0)?;
    if !(0..=MAX_STAGES).contains(&stages) {
        return Err(rec
            .error(
                codes::PIPELINE,
                args.span_of("num_stages"),
                format!("`num_stages` is between 0 and {MAX_STAGES}, this is {stages}"),
            )
            .help("0 is a plain loop, 2 or 3 overlap loads with compute")
            .into());
    }
    let schedule = args.str("schedule").filter(|name| *name != "auto");
    let schedule = schedule.map(str::to_string);
    if schedule.is_some() && stages == 0 {
        return Err(rec
            .error(
                codes::PIPELINE,
                args.span_of("schedule"),
                "`schedule` orders a pipelined loop, and `num_stages` is 0",
            )
            .help("give `num_stages`: 2 or 3 overlap loads with compute")
            .into());
    }
    let spec = PipelineSpec {
        stages: stages as u32,
        sync: lists(rec, args, "sync")?,
        versioned: Vec::new(),
        schedule,
    };
    Ok(Value::Loop(Rc::new(LoopSpec::Axes {
        kind: LoopKind::Pipelined(spec),
        axes: vec![axis],
        turns: Turns::of(rec, args)?,
    })))
}

/// `order` and `stage`: an entry for each statement of the body, or for each group of them.
#[derive(Clone, Debug)]
pub struct Turns {
    entries: Vec<Turn>,
    /// The statements of each entry; empty where each has its own.
    groups: Vec<Vec<i32>>,
    span: Span,
}

impl Turns {
    fn of(rec: &mut Recorder, args: &CallArgs) -> Result<Option<Turns>> {
        let order = ints(rec, args, "order")?;
        let stage_of = ints(rec, args, "stage")?;
        if order.len() != stage_of.len() {
            return Err(rec
                .error(
                    codes::PIPELINE,
                    args.span(),
                    format!(
                        "{WHAT}: `order` has {} entries and `stage` has {}",
                        order.len(),
                        stage_of.len()
                    ),
                )
                .help("give both, one entry for each statement of the body")
                .into());
        }
        // -1 leaves a statement where it is.
        if let Some(s) = stage_of.iter().find(|s| **s < -1) {
            return Err(rec
                .error(
                    codes::PIPELINE,
                    args.span_of("stage"),
                    format!("a stage is -1 or more, this is {s}"),
                )
                .help("number the stages from 0; -1 leaves a statement unscheduled")
                .into());
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|w| w[0] == w[1] && w[0] >= 0) {
            return Err(rec
                .error(
                    codes::PIPELINE,
                    args.span_of("order"),
                    format!("{WHAT}: two statements have the same place in `order`"),
                )
                .help("give each statement a number of its own")
                .into());
        }
        let groups = lists(rec, args, "group")?;
        if order.is_empty() {
            return Ok(None);
        }
        let given = sorted.into_iter().filter(|p| *p >= 0);
        if let Some((want, _)) = (0..).zip(given.clone()).find(|(want, got)| want != got) {
            return Err(rec
                .error(
                    codes::PIPELINE,
                    args.span_of("order"),
                    format!("no statement has place {want} in `order`"),
                )
                .help(format!(
                    "number the {} places from 0, each once",
                    given.count()
                ))
                .into());
        }
        // -1 leaves the choice to the compiler.
        let entries = order.iter().zip(&stage_of).map(|(place, stage)| Turn {
            stage: u32::try_from(*stage).ok(),
            order: u32::try_from(*place).ok(),
        });
        Ok(Some(Turns {
            entries: entries.collect(),
            groups,
            span: args.span(),
        }))
    }

    /// Gives the statements of the body their turns.
    pub fn give(&self, rec: &Recorder, body: &mut Block) -> Result<()> {
        let counted = counted(body);
        let groups = self.groups(rec, counted.len())?;
        if groups.len() != self.entries.len() {
            let (n, entries) = (groups.len(), self.entries.len());
            let what = match self.groups.is_empty() {
                true => format!("the body has {n} statements"),
                false => format!("there are {n} groups"),
            };
            let message =
                format!("{what}, `order` has {entries} entries and `stage` has {entries}");
            let help =
                "give both lists one entry for each statement, -1 where the compiler shall choose";
            return self.wrong(rec, message, help);
        }
        for stmt in body.iter_mut().filter(|stmt| stmt.takes_turn()) {
            stmt.turn = Some(Turn::default());
        }
        for (turn, group) in self.entries.iter().zip(&groups) {
            for member in group {
                body[counted[*member]].turn = Some(*turn);
            }
        }
        Ok(())
    }

    /// The statements of each entry, of a body of `n`.
    fn groups(&self, rec: &Recorder, n: usize) -> Result<Vec<Vec<usize>>> {
        if self.groups.is_empty() {
            return Ok((0..n).map(|i| vec![i]).collect());
        }
        const ONE: &str = "put each statement into one group";
        let mut seen = vec![false; n];
        let mut groups = Vec::new();
        for group in &self.groups {
            let mut members = Vec::new();
            for &member in group {
                let known = usize::try_from(member).ok().filter(|&m| m < n);
                let Some(member) = known else {
                    let message =
                        format!("`group` names statement {member}, the body has {n} statements");
                    return self.wrong(rec, message, "statements are numbered from 0");
                };
                if std::mem::replace(&mut seen[member], true) {
                    let message = format!("statement {member} is in two groups");
                    return self.wrong(rec, message, ONE);
                }
                members.push(member);
            }
            groups.push(members);
        }
        match seen.iter().position(|s| !s) {
            None => Ok(groups),
            Some(missing) => {
                let message = format!("statement {missing} is in no group");
                self.wrong(rec, message, ONE)
            }
        }
    }

    fn wrong<T>(&self, rec: &Recorder, message: String, help: &str) -> Result<T> {
        let error = rec.error(codes::PIPELINE, self.span, message);
        Err(error.help(help).into())
    }
}

/// Which statements of a body the lists have entries for: those that take turns, but the store
/// of an allocated variable's initial value.
fn counted(body: &[Stmt]) -> Vec<usize> {
    let counts = |at: &usize| {
        let initial = *at > 0 && is_initialised_by(&body[at - 1], &body[*at]);
        body[*at].takes_turn() && !initial
    };
    (0..body.len()).filter(counts).collect()
}

/// Whether a statement allocates a variable and the next one stores its initial value.
fn is_initialised_by(stmt: &Stmt, next: &Stmt) -> bool {
    match (&stmt.kind, &next.kind) {
        (
            StmtKind::Alloc(allocated),
            StmtKind::Store {
                buffer, indices, ..
            },
        ) => allocated == buffer && indices.is_empty(),
        _ => false,
    }
}

fn ints(rec: &mut Recorder, args: &CallArgs, name: &str) -> Result<Vec<i32>> {
    match args.value(name).cloned() {
        None => Ok(Vec::new()),
        Some(value) => int_list(rec, &value, args.span_of(name), name),
    }
}

fn lists(rec: &mut Recorder, args: &CallArgs, name: &str) -> Result<Vec<Vec<i32>>> {
    let Some(value) = args.value(name).cloned() else {
        return Ok(Vec::new());
    };
    let span = args.span_of(name);
    let Some(items) = value.sequence() else {
        return Err(not_a_list(rec, span, name, "lists of ints"));
    };
    items
        .iter()
        .map(|item| int_list(rec, item, span, name))
        .collect()
}

fn int_list(rec: &mut Recorder, value: &Value, span: Span, name: &str) -> Result<Vec<i32>> {
    let Some(items) = value.sequence() else {
        return Err(not_a_list(rec, span, name, "ints"));
    };
    items
        .iter()
        .map(|item| {
            let v = rec.to_int(item, span, &format!("an entry of `{name}`"))?;
            i32::try_from(v).map_err(|_| {
                rec.error(
                    codes::PIPELINE,
                    span,
                    format!("{v} is too large for `{name}`"),
                )
                .into()
            })
        })
        .collect()
}

fn not_a_list(rec: &Recorder, span: Span, name: &str, of: &str) -> crate::Error {
    rec.error(
        codes::PIPELINE,
        span,
        format!("`{name}` must be a list of {of}"),
    )
    .help("leave it out; the compiler then makes the schedule")
    .into()
}
