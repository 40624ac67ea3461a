//! What each wait and barrier of the steady iteration is for.
//!
//! A need is served by the barrier that its second op relies on, and by the last wait before that
//! barrier (or before the op itself) that its first op is complete after. A step that serves
//! several needs is listed with each of them.

use super::dependences::Between;
use super::trace::{Plan, Trace};
use super::waits::Table;
use super::{Served, Step};

/// The needs that each step of the steady iteration serves, in the order of the steps.
pub(super) fn served(plan: &Plan<'_>, steps: &[Step]) -> Vec<Served> {
    // The longest trace shows the steady iteration with all its neighbours.
    let Some(trace) = plan.traces.last() else {
        return Vec::new();
    };
    let table = Table::new(plan, trace);
    let mut found: Vec<Served> = Vec::new();
    for at in plan.instances(trace) {
        let need = &plan.needs[at.need];
        let Some(by) = plan.meeting_time(trace, at) else {
            continue;
        };
        let mut serve = |time: usize, is_it: &dyn Fn(&Step) -> bool| {
            let served = step_at(plan, trace, time, steps, is_it).map(|step| Served {
                step,
                earlier: need.earlier,
                later: need.later,
            });
            if let Some(new) = served.filter(|s| !found.contains(s)) {
                found.push(new);
            }
        };
        if need.between == Between::Block {
            serve(by, &|step| *step == Step::Barrier);
        }
        if let Some(counter) = need.wait
            && let Some((time, at_most)) = table.last_serving(plan, at.from, by, counter)
        {
            let wait = Step::Wait { counter, at_most };
            serve(time, &|step| *step == wait);
        }
    }
    found.sort_by_key(|s| (s.step, s.later, s.earlier));
    found
}

/// The step of this kind at a place of the steady iteration, which stands before the place's op.
fn step_at(
    plan: &Plan<'_>,
    trace: &Trace,
    time: usize,
    steps: &[Step],
    is_it: &dyn Fn(&Step) -> bool,
) -> Option<usize> {
    let (section, place) = plan.place(trace, time);
    if section != plan.depth {
        return None;
    }
    let op = steps.iter().position(|s| *s == Step::Run(place))?;
    (0..op).rev().find(|&at| is_it(&steps[at]))
}
