//! The hazard checker: proves that a lowered program's waits and barriers order what it does,
//! or names the two operations that nothing orders.
//!
//! It takes device (and loop) IR from anywhere, also written by hand, and shares nothing with
//! the derivation of waits and barriers: it runs the program, abstractly, and looks. All
//! threads of a group of waves go one way, so a run is one list of events a group
//! ([`mod@trace`]), with concrete loop indices and slots; groups are run together with the order
//! that barriers make between them ([`mod@run`]). Which threads meet at which place is counted
//! out, but only for pairs that nothing orders ([`mod@touch`], [`mod@places`]).
//!
//! Values that the way depends on and that are not known, such as trip counts, are supposed one
//! after another; a loop is run until its state repeats. Conditions that only waits and accesses
//! are under need not be supposed ([`mod@conditions`]). Where that fails the report says
//! `proved: false` and why.
//!
//! Rules, the same as the simulator's:
//! - An asynchronous operation is under way until its wave has waited for its counter: in
//!   instructions for vmcnt and lgkmcnt, in closed groups for cp.async. A counter that is full
//!   holds the wave back. An operation under an unknown condition helps only waits that come
//!   with it, and a wait under one orders only what comes with the wait.
//! - A bulk load is under way until the phase has completed that hears of its bytes, for all that do
//!   not know of that. A phase completes when arrivals and bytes are both there; who begins the next
//!   one must know of it, and who waits for it must have done so before the next one completes.
//! - A bulk store reads shared memory until its thread has waited for that, or for its group. The
//!   kernel does not end before.
//! - A bare barrier waits for no memory; the block's barrier does where the machine's drains.
//! - Blocks of a cluster that reach each other are followed together. What comes to another block's
//!   barrier or memory comes before that one ends; threads come to the barrier of the cluster, or to
//!   its first half, and wait there in turn.
//! - Registers are read when an instruction is issued; those that a load writes must be left
//!   alone until it has been waited for.
//! - Threads that write one place in one statement hold copies of one value.
//! - Buffers that lie over each other are one memory; what one held is gone once the other is
//!   written.
//! - In a pipelined loop that names its iterations a read takes what was written for its own one.
//! - Lanes that exchange data need `sync_warp`, but where those of a wave run in lockstep.
//!
//! Shared memory and registers are looked at, and tensors that one statement writes and another
//! touches, as far as places can be counted out. What other blocks do to them is not.

mod alias;
mod clash;
mod conditions;
mod event;
mod free;
mod indices;
mod knows;
mod places;
mod points;
mod proxy;
mod report;
mod rhythm;
mod run;
mod scan;
mod state;
mod threshold;
mod touch;
mod trace;
mod units;
mod value;
mod versions;

use std::cell::OnceCell;

use clash::{Clash, Memory, Remedy, Side};
use conditions::Conditions;
use event::Trace;
use rustc_hash::FxHashMap;
use tilewright_ir::text::NamesInText;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{DType, Func, Kernel, Level, Machine, Span, Stmt, StmtKind, Target, Var};

pub use report::{Hazard, HazardKind, HazardReport, Party, Reason};
use rhythm::Leaps;
use run::Run;
use scan::{Key, Scan, key};
use trace::{Choice, Stop, Tracer};
use units::Units;
pub use value::evaluate;

/// The most runs of a kernel.
const MAX_RUNS: usize = 600;

/// Checks every kernel of a lowered function.
pub fn check(func: &Func, target: Target) -> HazardReport {
    let mut report = HazardReport {
        proved: true,
        ..HazardReport::default()
    };
    if func.level == Level::Tile {
        report.proved = false;
        report.reasons.push(Reason {
            span: func.span,
            text: "tile IR has no threads yet; lower it first".to_string(),
        });
        return report;
    }
    for kernel in &func.kernels {
        check_kernel(func, kernel, target, &mut report);
    }
    report.proved &= report.reasons.is_empty();
    report
}

fn check_kernel(func: &Func, kernel: &Kernel, target: Target, report: &mut HazardReport) {
    let machine = target.machine();
    let scan = Scan::of(func, kernel, machine.warp_size);
    let mut units = Units::new(&scan);
    let mut conditions = Conditions::default();
    let mut stmts: FxHashMap<Key, &Stmt> = FxHashMap::default();
    walk_stmts(&kernel.body, &mut |stmt| {
        stmts.insert(key(stmt), stmt);
    });
    let namer = Namer {
        func,
        stmts,
        spelling: OnceCell::new(),
    };
    report.reasons.extend(scan.reasons.iter().cloned());
    if scan.in_part {
        return;
    }
    for stmt in &scan.divergent {
        let side = Side {
            stmt: *stmt,
            group: 0,
            moment: 0,
        };
        let clash = Clash {
            kind: HazardKind::DivergentBarrier,
            first: side,
            second: side,
            memory: Memory::default(),
            remedy: Remedy::Converge,
        };
        let hazard = namer.hazard(&clash, &[Trace::default()], 1);
        note(report, hazard);
    }
    let mut pending: Vec<Choice> = vec![Choice::default()];
    let mut runs = 0;
    while let Some(choice) = pending.pop() {
        runs += 1;
        if runs > MAX_RUNS {
            let text = format!("more than {MAX_RUNS} ways through the kernel");
            undecided(report, kernel.span, &text);
            break;
        }
        units.suppose(&choice.supposed);
        let traces = match traces(&scan, &mut units, &mut conditions, machine, &choice) {
            Ok(traces) => traces,
            Err(Stop::Need(need)) => {
                if !scan.same_in_cluster(&need.expr) {
                    let text = "blocks of a cluster may go different ways";
                    undecided(report, kernel.span, text);
                    continue;
                }
                if choice.supposed.contains_key(&need.expr) {
                    // Asking again would not end.
                    let text = "a value that decides the way stays unknown";
                    undecided(report, kernel.span, text);
                    continue;
                }
                for value in need.values.iter().rev() {
                    let mut more = choice.clone();
                    more.supposed.insert(need.expr.clone(), *value);
                    pending.push(more);
                }
                continue;
            }
            Err(Stop::Impossible) => continue,
            Err(Stop::Undecided(reason)) => {
                undecided(report, reason.span, &reason.text);
                continue;
            }
        };
        let outcome = Run::of(&scan, &mut units.places, machine, &conditions, &traces);
        let mut again = choice.clone();
        again.whole.extend(&outcome.unsteady);
        if again.whole.len() > choice.whole.len() {
            // Without a steady state nothing may be left out.
            pending.push(again);
            continue;
        }
        let mut clashes = outcome.clashes;
        let whole = whole_story(&choice, &traces);
        if whole || traces.len() == 1 {
            clashes.extend(versions::check(&scan, &mut units.places, &traces[0], whole));
        } else if clashes.is_empty() && is_certain(&choice, &traces) {
            for rank in 0..scan.ranks {
                let order = seen_by(&scan, &traces, &outcome.order, rank);
                let places = &mut units.places;
                clashes.extend(versions::check_together(&scan, places, &traces, &order));
            }
        }
        for clash in &clashes {
            note(report, namer.hazard(clash, &traces, scan.groups));
        }
        for stmt in outcome.unsteady {
            let span = namer.stmts.get(&stmt).map_or(kernel.span, |s| s.span);
            let text = "this loop comes to no steady state in the iterations looked at";
            undecided(report, span, text);
        }
        let turns = traces.iter().map(|t| t.turns).max().unwrap_or(0);
        if choice.turn + 1 < turns {
            let mut next = choice;
            next.turn += 1;
            pending.push(next);
        }
    }
    for tensor in std::mem::take(&mut units.places.unknown) {
        let name = &func.buffers[tensor].name;
        let text = format!("which elements of `{name}` threads touch is not known");
        undecided(report, kernel.span, &text);
    }
    report.runs += runs;
}

/// The events, of those of a run, that touch the memory of one block of the cluster.
fn seen_by(
    scan: &Scan<'_>,
    traces: &[Trace],
    order: &[(usize, usize)],
    rank: usize,
) -> Vec<(usize, usize)> {
    let seen = |(group, at): &(usize, usize)| {
        let event = &traces[*group].events[*at];
        event.skips().is_some() || event.kind.writes_in(rank, group / scan.groups)
    };
    order.iter().copied().filter(seen).collect()
}

/// Whether no condition was merely supposed. A single one may hold or not, whichever was supposed;
/// of several, values may have been chosen that never come together.
fn is_certain(choice: &Choice, traces: &[Trace]) -> bool {
    let supposed = choice.supposed.keys().any(|e| e.dtype() == DType::BOOL);
    let alone = choice.supposed.len() == 1;
    (!supposed || alone) && traces.iter().all(|t| t.turns == 0)
}

/// Whether nothing that a run may do was left out of it: all groups do the same, and no condition
/// was merely supposed.
fn whole_story(choice: &Choice, traces: &[Trace]) -> bool {
    let touches = |t: &Trace| {
        let events = t.events.iter();
        let touching = events.filter(|e| e.kind.touches().is_some());
        touching.map(|e| (e.stmt, e.moment)).collect::<Vec<_>>()
    };
    is_certain(choice, traces) && traces.windows(2).all(|w| touches(&w[0]) == touches(&w[1]))
}

/// The ways of all groups.
fn traces<'f>(
    scan: &'f Scan<'f>,
    units: &mut Units<'f>,
    conditions: &mut Conditions,
    machine: &'static Machine,
    choice: &Choice,
) -> Result<Vec<Trace>, Stop> {
    units.leaps = Leaps::default();
    loop {
        conditions.clear();
        let before = units.leaps.clone();
        let blocks = 0..scan.ranks;
        let groups = blocks.flat_map(|rank| (0..scan.groups).map(move |group| (rank, group)));
        let traces = groups
            .map(|group| Tracer::of(scan, units, conditions, group, machine, choice))
            .collect();
        // A later group may have less room than those before it took.
        if units.leaps == before {
            return traces;
        }
    }
}

fn undecided(report: &mut HazardReport, span: Span, text: &str) {
    let reason = Reason {
        span,
        text: text.to_string(),
    };
    if !report.reasons.contains(&reason) {
        report.reasons.push(reason);
    }
}

/// Adds a hazard unless one of its kind between the same statements is known.
fn note(report: &mut HazardReport, hazard: Hazard) {
    let same = |h: &Hazard| {
        h.kind == hazard.kind
            && (&h.buffer, h.slot) == (&hazard.buffer, hazard.slot)
            && h.first.text == hazard.first.text
            && h.second.text == hazard.second.text
            && (h.first.span, h.second.span) == (hazard.first.span, hazard.second.span)
    };
    if !report.hazards.iter().any(same) {
        report.hazards.push(hazard);
    }
}

/// What helps where threads of one statement meet.
const ONE_STATEMENT: &str = "both are this statement, done by two threads: give each thread elements \
     of its own, update them atomically, or read into other memory first";

/// Turns clashes into words.
struct Namer<'f> {
    func: &'f Func,
    stmts: FxHashMap<Key, &'f Stmt>,
    /// Made where something is said.
    spelling: OnceCell<NamesInText>,
}

impl Namer<'_> {
    fn spelling(&self) -> &NamesInText {
        self.spelling.get_or_init(|| NamesInText::of(self.func))
    }

    fn hazard(&self, clash: &Clash, traces: &[Trace], groups: usize) -> Hazard {
        let (first, second) = (
            self.party(clash.first, traces, groups),
            self.party(clash.second, traces, groups),
        );
        let (earlier, later) = (moment(clash.first, traces), moment(clash.second, traces));
        let distance = self.distance(earlier, later);
        // No barrier can stand between the threads of one statement.
        let at_once = clash.first.stmt == clash.second.stmt && earlier == later;
        let help = match clash.remedy {
            Remedy::Barrier | Remedy::WarpBarrier if at_once => ONE_STATEMENT.to_string(),
            _ => clash.help(),
        };
        let name = |b| self.spelling().buffer(self.func, b).to_string();
        let buffer = clash.memory.root.map(name);
        Hazard {
            kind: clash.kind,
            buffer: buffer.unwrap_or_default(),
            over: clash.memory.over.map(name),
            slot: clash.memory.slot,
            distance,
            help,
            first,
            second,
        }
    }

    /// How many iterations of the innermost common loop lie between two moments.
    fn distance(&self, first: &[(Var, i64)], second: &[(Var, i64)]) -> Option<i64> {
        let pairs = first.iter().zip(second);
        let (a, b) = pairs.take_while(|(a, b)| a.0 == b.0).last()?;
        let step = self.stmts.values().find_map(|stmt| match &stmt.kind {
            StmtKind::For(l) => {
                let axis = l.axes.iter().find(|axis| axis.var == a.0)?;
                i64::try_from(axis.step.as_int()?).ok()
            }
            _ => None,
        });
        Some((b.1 - a.1) / step.filter(|s| *s != 0).unwrap_or(1))
    }

    fn party(&self, side: Side, traces: &[Trace], groups: usize) -> Party {
        let stmt = self.stmts.get(&side.stmt);
        let text = stmt.map(|s| self.spelling().stmt(self.func, s));
        let line = text.as_deref().and_then(|t| t.lines().next());
        Party {
            span: stmt.map_or(self.func.span, |s| s.span),
            text: line.unwrap_or("the end of the kernel").trim().to_string(),
            group: (groups > 1).then_some(side.group as u32),
            iteration: moment(side, traces)
                .iter()
                .map(|(var, value)| (self.func.vars[*var].name.clone(), *value))
                .collect(),
        }
    }
}

/// The loops around a side of a clash.
fn moment(side: Side, traces: &[Trace]) -> &[(Var, i64)] {
    let trace = traces.get(side.group);
    let moment = trace.and_then(|t| t.moments.get(side.moment as usize));
    moment.map_or(&[], |m| m)
}
