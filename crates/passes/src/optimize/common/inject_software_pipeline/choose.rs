//! Which schedule a loop gets: the one that was asked for, or the cheapest that applies.

use std::cell::OnceCell;
use std::rc::Rc;

use tilewright_ir::nearest::suggestion;
use tilewright_ir::{Buffer, Code, Diagnostic, Func, Loop, Span};
use tilewright_schedule::order::{OrderError, Schedule, Step};

use super::SCHEDULE_TEXT;
use super::again::{self, Before};
use super::arrangement::{Arrangement, Entry, Exposed, Realised};
use super::derive::{Asked, Meetings, Scheduled, Site, derive};
use super::idle::Iteration;
use super::memory;
use super::pieces::Pieces;
use super::pressure::{self, Taken};
use super::roles::{self, Roles};
use super::schedules::{NamedSchedule, Question, SCHEDULES, Why, find_schedule, select};
use super::split::Splits;
use super::text::{self, OrderText, is_text, parse};

const UNKNOWN_SCHEDULE: Code = Code("unknown-schedule");
const SCHEDULE_REFUSED: Code = Code("schedule-refused");

/// What a schedule costs, worst first: whether its versions are more than shared memory has room for,
/// and in a steady iteration: how long products wait for operands or
/// for the block to meet, waits that leave nothing in flight (where the iteration does not take as
/// long as what they wait for), barriers, waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Cost {
    /// Bytes of shared memory, where there are not so many.
    pub bytes: Option<u64>,
    pub exposed: Exposed,
    pub drains: u32,
    pub barriers: u32,
    pub waits: u32,
}

impl Cost {
    fn of(bytes: Option<u64>, exposed: Exposed, schedule: &Schedule) -> Cost {
        let count = |test: &dyn Fn(&Step) -> bool| {
            let steps = schedule.steady.steps.iter();
            steps.filter(|step| test(step)).count() as u32
        };
        Cost {
            bytes,
            exposed,
            drains: count(&|s| matches!(s, Step::Wait { at_most: 0, .. })),
            barriers: count(&|s| *s == Step::Barrier),
            waits: count(&|s| matches!(s, Step::Wait { .. })),
        }
    }
}

/// A schedule that applies, with all that follows from it.
pub(super) struct Candidate {
    pub name: String,
    pub arrangement: Arrangement,
    /// The pieces that it refers to.
    pub of: Rc<Pieces>,
    /// The pieces as they stand in a steady iteration.
    pub pieces: Pieces,
    pub scheduled: Scheduled,
    /// What warp groups run that have roles.
    pub roles: Option<Roles>,
    pub cost: Cost,
    /// The registers that it takes.
    pub taken: Option<Taken>,
    /// The function with the registers that the order takes.
    func: Func,
}

impl Candidate {
    /// Whether a thread has the registers that it takes. Who wrote an order is told what the compiler made of
    /// it, and not what it foresaw.
    fn check_registers(&self, wanted: &Wanted) -> Result<(), Why> {
        match (wanted, &self.taken) {
            (Wanted::Written(_), _) | (_, None) => Ok(()),
            (_, Some(taken)) => taken.check(),
        }
    }
}

/// What came of a schedule.
pub(super) enum Outcome {
    Applies(Box<Candidate>),
    Refused(Why),
    /// It applies, and is no cheaper: for this reason it was not looked into.
    Costlier(Why),
    /// The order breaks a dependence between two pieces.
    Broken {
        why: String,
        pair: Option<(Span, Span)>,
    },
}

/// The choice, with what came of each schedule that was tried.
pub(super) struct Choice {
    pub chosen: Candidate,
    /// The others, by name.
    pub others: Vec<(String, Outcome)>,
    /// The rows by which `block_pingpong` takes an order, where that was tried.
    pub rows: Vec<String>,
}

/// Why a loop has no schedule.
pub(super) enum NoSchedule {
    /// The user's mistake.
    Error(Box<Diagnostic>),
    /// It is written as it stands: the order that was planned cannot be.
    Broken {
        why: String,
        pair: Option<(Span, Span)>,
    },
}

/// Chooses a schedule for the loop; `func` gets the registers that it takes.
pub(super) fn choose(
    site: &Site<'_>,
    func: &mut Func,
    (l, span): (&Loop, Span),
    pieces: &Pieces,
    asked: Option<&str>,
) -> Result<Choice, NoSchedule> {
    let index = &func.vars[l.axes[0].var].name;
    let wanted = wanted(asked, index, span).map_err(NoSchedule::Error)?;
    let asked = asked.filter(|_| !matches!(wanted, Wanted::Any));
    let splits = Splits::default();
    let question = Question {
        func,
        kernel: site.kernel,
        machine: site.target.machine(),
        pieces,
        l,
        splits: &splits,
    };
    let rows = match wanted {
        Wanted::Any => select::explained(question),
        Wanted::Named(named) if named.selects() => select::explained(question),
        _ => Vec::new(),
    };
    let mut others: Vec<(String, Outcome)> = Vec::new();
    let mut arranged: Vec<(Exposed, String, Arrangement, Rc<Pieces>)> = Vec::new();
    for (name, arrangement) in wanted.arrangements(question) {
        match arrangement {
            Ok(arrangement) => match question.splits.of(arrangement.split, question.func, pieces) {
                Ok(split) => {
                    let question = Question {
                        pieces: &split,
                        ..question
                    };
                    let exposed = arrangement.exposed(question);
                    arranged.push((exposed, name, arrangement, split));
                }
                Err(why) => others.push((name, Outcome::Refused(why))),
            },
            Err(why) => others.push((name, Outcome::Refused(why))),
        }
    }
    // The cheapest in what is known already come first; what cannot be cheaper is not derived.
    arranged.sort_by_key(|(exposed, ..)| *exposed);
    let mut best: Option<Box<Candidate>> = None;
    // Those that take more registers than there are.
    let mut beyond: Vec<Box<Candidate>> = Vec::new();
    let whole = OnceCell::new();
    for (exposed, name, arrangement, of) in arranged {
        if let Some(best) = best.as_ref().filter(|best| best.cost.bytes.is_none())
            && let Some(why) = costs_more(best, exposed, &arrangement)
        {
            others.push((name, Outcome::Costlier(why)));
            continue;
        }
        let question = Question {
            pieces: &of,
            ..question
        };
        let outcome = attempt(
            site,
            (question, &of),
            &whole,
            l,
            &name,
            (exposed, arrangement),
        );
        let outcome = match outcome {
            Outcome::Applies(new) => match new.check_registers(&wanted) {
                Ok(()) => Outcome::Applies(new),
                Err(why) => {
                    beyond.push(new);
                    Outcome::Refused(why)
                }
            },
            outcome => outcome,
        };
        match outcome {
            Outcome::Applies(new) if best.as_ref().is_none_or(|b| new.cost < b.cost) => {
                let worse = best.replace(new);
                others.extend(worse.map(|worse| (worse.name.clone(), Outcome::Applies(worse))));
            }
            outcome => others.push((name, outcome)),
        }
    }
    let order = |name: &str| SCHEDULES.iter().position(|s| s.name == name);
    others.sort_by_key(|(name, _)| order(name));
    // A loop that asks for none has one all the same: that with the fewest.
    if matches!(wanted, Wanted::Any) && best.as_ref().is_none_or(|best| best.cost.bytes.is_some()) {
        let excess = |c: &Candidate| c.taken.map(|taken| taken.excess());
        let fitting = beyond
            .into_iter()
            .filter(|c| c.cost.bytes.is_none() || best.is_none());
        if let Some(fewest) = fitting.min_by_key(|c| (excess(c), c.cost, order(&c.name))) {
            others.retain(|(name, _)| *name != fewest.name);
            best = Some(fewest);
        }
    }
    match best {
        Some(mut chosen) => {
            std::mem::swap(func, &mut chosen.func);
            Ok(Choice {
                chosen: *chosen,
                others,
                rows,
            })
        }
        None => Err(none_applies(others, asked, span)),
    }
}

/// What a loop asks for.
enum Wanted {
    /// The cheapest that applies.
    Any,
    Named(&'static NamedSchedule),
    Written(OrderText),
}

fn wanted(asked: Option<&str>, index: &str, span: Span) -> Result<Wanted, Box<Diagnostic>> {
    let Some(asked) = asked else {
        return Ok(Wanted::Any);
    };
    if !is_text(asked) {
        let named = find_schedule(asked).map(Wanted::Named);
        return named.ok_or_else(|| Box::new(unknown(asked, span)));
    }
    let orders = parse(asked).map_err(|mistake| {
        let line = mistake.line(asked);
        let message = format!("in line {line} of the order: {}", mistake.message);
        Box::new(Diagnostic::error(SCHEDULE_TEXT, span, message))
    })?;
    let order = orders.into_iter().find(|o| o.is_for(index));
    order.map(Wanted::Written).ok_or_else(|| {
        let message = format!("none of these orders is for the loop over `{index}`");
        let error = Diagnostic::error(SCHEDULE_TEXT, span, message);
        Box::new(error.help(format!("begin one with `schedule NAME for {index}`")))
    })
}

impl Wanted {
    /// The orders to try.
    fn arrangements(&self, question: Question<'_>) -> Vec<(String, Result<Arrangement, Why>)> {
        let of = |named: &NamedSchedule| (named.name.to_string(), named.arrange(question));
        match self {
            Wanted::Any => {
                let tried = |s: &NamedSchedule| Some((s.name.to_string(), s.try_for(question)?));
                SCHEDULES.iter().filter_map(tried).collect()
            }
            Wanted::Named(named) => vec![of(named)],
            Wanted::Written(order) => vec![(order.name.clone(), text::arrange(order, question))],
        }
    }
}

/// Why an order is certainly no cheaper than another, if it is not: products wait longer for their
/// operands, or it asks for barriers beyond those needed where no wait is for long, and what waits cost
/// is no part of the cycles.
fn costs_more(best: &Candidate, exposed: Exposed, order: &Arrangement) -> Option<Why> {
    if exposed > best.cost.exposed {
        return Some(match exposed {
            Exposed::Products(n) => format!("products would wait {n} times in an iteration").into(),
            Exposed::Cycles(n) => {
                format!("matrix units would wait {n} cycles in an iteration").into()
            }
        });
    }
    let timed = matches!(exposed, Exposed::Cycles(_));
    let meets = !timed && order.lag == 0 && order.clusters.iter().any(|c| c.meet);
    (meets && best.cost.drains == 0).then(|| "its barriers would spare no wait".into())
}

/// Derives an order. `whole` has the meetings of undivided pieces, which are the same in each.
fn attempt<'a>(
    site: &Site<'a>,
    (question, of): (Question<'_>, &Rc<Pieces>),
    whole: &OnceCell<Meetings<'a>>,
    l: &Loop,
    name: &str,
    (exposed, arrangement): (Exposed, Arrangement),
) -> Outcome {
    let mut func = question.func.clone();
    let Realised {
        pieces: placed,
        barriers,
    } = match arrangement.realise(question, &mut func) {
        Ok(realised) => realised,
        Err(why) => return Outcome::Refused(why),
    };
    if arrangement.producer {
        return with_roles((question, of), func, placed, name, (exposed, arrangement));
    }
    let entries: Vec<Entry> = arrangement.entries().collect();
    let of_order = Site {
        func: &func,
        ..*site
    };
    let index = l.axes[0].var;
    let asked = Asked {
        barriers: &barriers,
        spare: arrangement.spare,
        lag: arrangement.lag,
    };
    let derived = if entries.iter().all(|e| e.part.is_none()) {
        let whole = whole.get_or_init(|| Meetings::new(site, index, question.pieces));
        let meet =
            |a: usize, b: usize, buffer| whole.between(entries[a].piece, entries[b].piece, buffer);
        derive(&of_order, l, &placed, asked, &meet)
    } else {
        let parts = Meetings::new(&of_order, index, &placed);
        derive(&of_order, l, &placed, asked, &|a, b, buffer| {
            parts.between(a, b, buffer)
        })
    };
    match derived {
        Ok(scheduled) => {
            let bytes = memory::bytes_of_versions(&func, &scheduled);
            let most = u64::from(question.machine.shared.bytes);
            let bytes = Some(bytes).filter(|bytes| *bytes > most);
            let mut cost = Cost::of(bytes, exposed, &scheduled.schedule);
            if let Exposed::Cycles(_) = exposed {
                let took = Iteration::derived(question, &arrangement, &scheduled.schedule);
                cost.exposed = Exposed::Cycles(took.idle);
                if took.hides_copies {
                    cost.drains = 0;
                }
            }
            let steps = &scheduled.schedule.steady.steps;
            let steady = (&placed.list[..], &steps[..]);
            let taken = pressure::taken(&func, (question.kernel, question.machine), l, steady);
            Outcome::Applies(Box::new(Candidate {
                name: name.to_string(),
                arrangement,
                of: of.clone(),
                pieces: placed,
                scheduled,
                roles: None,
                cost,
                taken,
                func,
            }))
        }
        Err(error) => broken(&func, &placed, error),
    }
}

/// Derives a producer and consumers.
fn with_roles(
    (question, of): (Question<'_>, &Rc<Pieces>),
    mut func: Func,
    placed: Pieces,
    name: &str,
    (exposed, arrangement): (Exposed, Arrangement),
) -> Outcome {
    let site = (question.kernel, question.machine);
    let around = again::around(&question.kernel.body, question.l).unwrap_or_default();
    let before = Before::of(question.l, &around);
    match roles::derive(&mut func, site, &placed, (question.l, &before)) {
        Ok(roles) => {
            let cost = Cost {
                bytes: None,
                exposed,
                drains: 0,
                barriers: 0,
                waits: roles.channels.len() as u32,
            };
            Outcome::Applies(Box::new(Candidate {
                name: name.to_string(),
                arrangement,
                of: of.clone(),
                pieces: placed,
                scheduled: roles.consumers.scheduled.clone(),
                roles: Some(roles),
                cost,
                taken: None,
                func,
            }))
        }
        Err(why) => Outcome::Refused(why),
    }
}

fn broken(func: &Func, placed: &Pieces, (error, buffer): (OrderError, Buffer)) -> Outcome {
    let name = &func.buffers[buffer].name;
    match error {
        OrderError::Breaks { earlier, later, .. } => {
            let span = |at: usize| placed.list[at].stmt.span;
            Outcome::Broken {
                why: format!("its order breaks a dependence through `{name}`"),
                pair: Some((span(earlier), span(later))),
            }
        }
        OrderError::RegisterVersions { versions, .. } => Outcome::Broken {
            why: format!("`{name}` would need {versions} sets of registers"),
            pair: None,
        },
    }
}

/// Nothing that was tried applies: where one was asked for that is an error.
fn none_applies(tried: Vec<(String, Outcome)>, asked: Option<&str>, span: Span) -> NoSchedule {
    let mut first = None;
    for (name, outcome) in tried {
        let (why, pair) = match outcome {
            Outcome::Applies(_) | Outcome::Costlier(_) => continue,
            Outcome::Refused(why) => (why.into_owned(), None),
            Outcome::Broken { why, pair } => (why, pair),
        };
        if asked.is_some() {
            let message = format!("the schedule `{name}` does not fit this loop: {why}");
            let error = Diagnostic::error(SCHEDULE_REFUSED, span, message);
            let help = "leave `schedule` out to let the compiler choose; `--explain schedule` \
                        says what it chooses and why";
            return NoSchedule::Error(Box::new(error.help(help)));
        }
        first.get_or_insert((why, pair));
    }
    let (why, pair) = first.unwrap_or_else(|| ("no schedule applies".to_string(), None));
    NoSchedule::Broken { why, pair }
}

fn unknown(name: &str, span: Span) -> Diagnostic {
    let names = || SCHEDULES.iter().map(|s| s.name);
    let meant = suggestion(name, names()).map_or_else(String::new, |text| format!("{text} "));
    let all: Vec<String> = names().map(|n| format!("`{n}`")).collect();
    let message = format!("there is no schedule `{name}`");
    let help = format!("{meant}the schedules are {}", all.join(", "));
    Diagnostic::error(UNKNOWN_SCHEDULE, span, message).help(help)
}
