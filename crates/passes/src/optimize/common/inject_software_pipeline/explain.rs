//! What is said of a loop's schedule to who asks for it.

use tilewright_ir::{Buffer, Code, Diagnostic, Func, Loop, Severity, Span};
use tilewright_schedule::order::Step;

use super::super::effects::Effects;
use super::arrangement::{Entry, Exposed};
use super::choose::{Candidate, Choice, Cost, Outcome};
use super::roles::{Between, Roles};
use super::text;

/// The topic of these remarks.
pub const SCHEDULE: Code = Code("schedule");

/// What orders as text are under.
pub const ORDER: Code = Code("order");

/// The loop's order as text, with the waits and barriers of a steady iteration beside it.
pub(super) fn order(
    func: &Func,
    (l, span): (&Loop, Span),
    chosen: &Candidate,
    steps: &[(Option<usize>, String)],
) -> Diagnostic {
    let pieces = &*chosen.of;
    let mut derived: Vec<Vec<String>> = vec![Vec::new(); chosen.arrangement.clusters.len()];
    let mut ends = Vec::new();
    for cluster in &chosen.arrangement.clusters {
        ends.push(ends.last().copied().unwrap_or(0) + cluster.entries.len());
    }
    let cluster_of = |op: &usize| ends.iter().position(|end| op < end);
    match &chosen.roles {
        Some(roles) => derived[0] = channels(func, roles),
        None => {
            for (op, line) in steps {
                if let Some(lines) = op
                    .as_ref()
                    .and_then(cluster_of)
                    .and_then(|at| derived.get_mut(at))
                {
                    lines.push(line.clone());
                }
            }
        }
    }
    let index = &func.vars[l.axes[0].var].name;
    let names = (chosen.name.as_str(), index.as_str());
    let text = text::print(func, pieces, names, &chosen.arrangement, &|at| {
        derived[at].clone()
    });
    Diagnostic::new(Severity::Remark, ORDER, span, text)
}

/// Which schedule the loop has and what it does, and what came of the others.
pub(super) fn explain(
    func: &Func,
    choice: &Choice,
    (asked, span): (bool, Span),
    steps: &[(Option<usize>, String)],
) -> Diagnostic {
    let chosen = &choice.chosen;
    let pieces = &*chosen.of;
    let stages = chosen.scheduled.stages;
    let chosen_by = if asked { "asked for" } else { "chosen" };
    let message = format!(
        "this loop runs by `{}` ({chosen_by}), {stages} stage{}: {}",
        chosen.name,
        if stages == 1 { "" } else { "s" },
        cost(chosen.cost)
    );
    let mut remark = Diagnostic::new(Severity::Remark, SCHEDULE, span, message);
    for (name, outcome) in &choice.others {
        remark = remark.note(match outcome {
            Outcome::Applies(other) => format!("`{name}` applies too: {}", cost(other.cost)),
            Outcome::Costlier(why) => format!("`{name}` applies too, and costs more: {why}"),
            Outcome::Refused(why) => format!("`{name}` does not apply: {why}"),
            Outcome::Broken { why, .. } => format!("`{name}` does not apply: {why}"),
        });
    }
    for row in &choice.rows {
        remark = remark.note(row.clone());
    }
    for cluster in &chosen.arrangement.clusters {
        let label = |entry: &Entry| chosen.arrangement.label(func, pieces, *entry);
        let entries: Vec<String> = cluster.entries.iter().map(label).collect();
        let meet = if cluster.meet { "barrier; " } else { "" };
        let priority = match cluster.priority {
            0 => String::new(),
            n => format!(" prio {n}"),
        };
        let woven = if cluster.woven { " woven" } else { "" };
        remark = remark.note(format!(
            "cluster {}{priority}{woven}: {meet}{}",
            cluster.name,
            entries.join("; ")
        ));
    }
    if chosen.arrangement.lag > 0 {
        remark = remark.note("the second half of the block's waves is one barrier behind");
    }
    if let Some(taken) = chosen.taken {
        remark = remark.note(format!("a lane takes {taken}, as foreseen"));
    }
    let lines = match &chosen.roles {
        Some(roles) => channels(func, roles),
        None => steps.iter().map(|(_, line)| line.clone()).collect(),
    };
    for line in lines {
        remark = remark.note(line);
    }
    let versions = chosen.scheduled.buffers.iter();
    let versions = versions.map(|b| {
        (
            func.buffers[*b].name.as_str(),
            chosen.scheduled.versions(*b),
        )
    });
    let versions: Vec<String> = versions
        .filter(|(_, n)| *n > 1)
        .map(|(name, n)| format!("`{name}` {n}"))
        .collect();
    match versions.is_empty() {
        true => remark,
        false => remark.note(format!("versions: {}", versions.join(", "))),
    }
}

fn cost(cost: Cost) -> String {
    let counted = |n: u32, one: &str, many: &str| match n {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    };
    let mut parts = vec![
        counted(cost.barriers, "barrier", "barriers"),
        counted(cost.waits, "wait", "waits"),
    ];
    if cost.drains > 0 {
        parts.push(format!("{} of them for all that is in flight", cost.drains));
    }
    if let Some(bytes) = cost.bytes {
        parts.push(format!(
            "{bytes} bytes of shared memory, more than there are"
        ));
    }
    match cost.exposed {
        Exposed::Products(0) | Exposed::Cycles(0) => {}
        Exposed::Products(n) => {
            let products = counted(n, "product waits", "products wait");
            parts.push(format!("{products} for operands"));
        }
        Exposed::Cycles(n) => parts.push(format!("matrix units wait {n} cycles for operands")),
    }
    parts.join(", ")
}

/// A line for each channel between roles.
fn channels(func: &Func, roles: &Roles) -> Vec<String> {
    let name = |b: &Buffer| format!("`{}`", func.buffers[*b].name);
    let line = |channel: &Between| {
        let tiles: Vec<String> = channel.tiles.iter().map(name).collect();
        let [full, empty] = [&channel.full, &channel.empty].map(name);
        format!(
            "{} handed over by {full}, and back by {empty}",
            tiles.join(", ")
        )
    };
    let turn = roles.turn.iter();
    let turn = turn.map(|b| format!("consumers take turns by {}", name(b)));
    let resident = match &roles.resident {
        Ok(r) => {
            let (blocks, rounds) = (r.blocks, r.rounds());
            format!("{blocks} blocks stay and take up to {rounds} tiles each, one after another")
        }
        Err(why) => format!("a block takes one tile: {why}"),
    };
    let pairs = match &roles.pairs {
        Ok(_) => "blocks are pairs that bring each other halves of what both read".to_string(),
        Err(why) => format!("each block copies for itself: {why}"),
    };
    let overlap = match &roles.overlap {
        Ok(()) => "a product starts before the one before it is done".to_string(),
        Err(why) => format!("each product is done before the next starts: {why}"),
    };
    let leaving = roles.leaving.iter();
    let leaving = leaving.map(|b| {
        let name = name(b);
        format!("nobody reads again what is copied of {name}: it leaves the L2 cache first")
    });
    let lines = roles.channels.iter().map(line).chain(turn);
    lines
        .chain([resident, pairs, overlap])
        .chain(leaving)
        .collect()
}

/// A line for each wait and barrier of an iteration: the op it stands before, and what it is for. None where
/// streams hand over by channels.
pub(super) fn steps(func: &Func, chosen: &Candidate) -> Vec<(Option<usize>, String)> {
    if chosen.roles.is_some() {
        return Vec::new();
    }
    let pieces = &*chosen.of;
    let schedule = &chosen.scheduled.schedule;
    let entries: Vec<Entry> = chosen.arrangement.entries().collect();
    let names = entries.iter().map(|entry| {
        let own = Entry { ahead: 0, ..*entry };
        chosen.arrangement.label(func, pieces, own)
    });
    let names: Vec<String> = names.collect();
    let stmts = chosen.pieces.list.iter().map(|p| &p.stmt);
    let effects: Vec<Effects> = stmts.map(|s| Effects::of(func, s)).collect();
    let mut lines = Vec::new();
    for (at, step) in schedule.steady.steps.iter().enumerate() {
        let what = match step {
            Step::Wait { counter, at_most } => format!("wait {}({at_most})", counter.name()),
            Step::Barrier => "barrier".to_string(),
            _ => continue,
        };
        let next = schedule.steady.steps[at..].iter().find_map(|s| match s {
            Step::Run(op) => Some(*op),
            _ => None,
        });
        let before = next.map_or_else(String::new, |op| format!(" before {}", names[op]));
        let mut served: Vec<String> = Vec::new();
        for need in schedule.served.iter().filter(|s| s.step == at) {
            let (first, second) = (&effects[need.earlier], &effects[need.later]);
            let (earlier, later) = (&names[need.earlier], &names[need.later]);
            let needs = |a: &Effects, b: &Effects| a.writes.iter().any(|w| b.reads.contains(w));
            let text = match (needs(first, second), needs(second, first)) {
                (true, _) => format!("{later} needs {earlier}"),
                (false, true) => format!("{later} overwrites what {earlier} reads"),
                (false, false) => format!("{later} overwrites {earlier}"),
            };
            if !served.contains(&text) {
                served.push(text);
            }
        }
        const SHOWN: usize = 4;
        let more = served.len().saturating_sub(SHOWN);
        served.truncate(SHOWN);
        if more > 0 {
            served.push(format!("{more} more"));
        }
        if served.is_empty() {
            served.push("the order asks for it".to_string());
        }
        lines.push((next, format!("{what}{before}: {}", served.join("; "))));
    }
    lines
}
