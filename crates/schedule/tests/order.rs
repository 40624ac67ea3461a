//! Orders: what is derived for known loops, and for thousands of random ones that an executor
//! which knows nothing of the derivation finds nothing wrong and nothing too much.

use proptest::prelude::*;
use tilewright_ir::Counter;
use tilewright_schedule::footprint::Meeting;
use tilewright_schedule::order::{
    Completion, Op, Order, OrderError, Resource, Schedule, Section, Space, Step, Tail, Touch,
    derive,
};

const SHARED: Resource = Resource {
    space: Space::Shared,
    private: true,
};
const REGISTERS: Resource = Resource {
    space: Space::Register,
    private: true,
};
const ACCUMULATOR: Resource = Resource {
    space: Space::Register,
    private: false,
};

fn counted(counter: Counter, instructions: u32) -> Completion {
    Completion::Counted {
        counter,
        instructions,
    }
}

fn op(program: usize, distance: u32, completion: Completion, touches: &[(usize, char)]) -> Op {
    Op {
        distance,
        completion,
        program,
        touches: touches
            .iter()
            .map(|&(resource, how)| Touch {
                resource,
                write: how == 'w',
            })
            .collect(),
    }
}

fn order(ops: Vec<Op>, resources: &[Resource], tail: Tail) -> Order {
    Order {
        ops,
        resources: resources.to_vec(),
        barriers: Vec::new(),
        lag: 0,
        tail,
        trip: None,
        spare: 0,
    }
}

fn across(_: usize, _: usize, _: usize, _: usize) -> Meeting {
    Meeting::AcrossWarps
}

/// `w1 | 0 1 c` and so on: a section in a line.
fn line(section: &Section) -> String {
    let words: Vec<String> = section
        .steps
        .iter()
        .map(|step| match step {
            Step::Run(op) => op.to_string(),
            Step::Commit(_) => "commit".into(),
            Step::Wait { counter, at_most } => format!("{}({at_most})", counter.name()),
            Step::Barrier => "barrier".into(),
            Step::WarpSync => "sync_warp".into(),
        })
        .collect();
    words.join(" ")
}

fn lines(schedule: &Schedule) -> Vec<String> {
    let sections = schedule.prologue.iter().chain([&schedule.steady]);
    sections.chain(&schedule.epilogue).map(line).collect()
}

/// Two copies and a gemm.
fn gemm(stages: u32, completion: Completion, tail: Tail) -> Order {
    order(
        vec![
            op(0, stages - 1, completion, &[(0, 'w')]),
            op(1, stages - 1, completion, &[(1, 'w')]),
            op(2, 0, Completion::Sync, &[(0, 'r'), (1, 'r'), (2, 'w')]),
        ],
        &[SHARED, SHARED, ACCUMULATOR],
        tail,
    )
}

#[test]
fn ampere_gemm_waits_for_all_but_the_younger_groups() {
    let three = derive(&gemm(3, counted(Counter::CpAsync, 1), Tail::Guard), &across).unwrap();
    assert_eq!(three.versions, [3, 3, 1]);
    assert_eq!(
        lines(&three),
        [
            "0 1 commit",
            "0 1 commit",
            "cp_async(1) barrier 0 1 commit 2",
        ]
    );
    let one = derive(&gemm(1, counted(Counter::CpAsync, 1), Tail::Guard), &across).unwrap();
    assert_eq!(lines(&one), ["barrier 0 1 commit cp_async(0) barrier 2"]);
}

#[test]
fn copies_that_are_waited_for_together_are_one_group() {
    let copy = counted(Counter::CpAsync, 1);
    let copies = (0..3).map(|at| op(at, 2, copy, &[(at, 'w')]));
    let reads = [(0, 'r'), (1, 'r'), (2, 'r'), (3, 'w')];
    let ops = copies.chain([op(3, 0, Completion::Sync, &reads)]);
    let shared = [SHARED, SHARED, SHARED, ACCUMULATOR];
    let three = derive(&order(ops.collect(), &shared, Tail::Guard), &across).unwrap();
    assert_eq!(
        lines(&three),
        [
            "0 1 2 commit",
            "0 1 2 commit",
            "cp_async(1) barrier 0 1 2 commit 3",
        ]
    );
}

#[test]
fn cdna_gemm_counts_instructions_and_peels() {
    let three = derive(&gemm(3, counted(Counter::Vmcnt, 4), Tail::Peel), &across).unwrap();
    assert_eq!(
        lines(&three),
        [
            "0 1",
            "0 1",
            "vmcnt(8) barrier 0 1 2",
            "vmcnt(8) barrier 2",
            "vmcnt(0) barrier 2",
        ]
    );
}

#[test]
fn a_staged_copy_needs_one_version_fewer() {
    let vm = counted(Counter::Vmcnt, 4);
    let staged = order(
        vec![
            op(0, 1, vm, &[(0, 'w')]),
            op(2, 0, Completion::Sync, &[(1, 'r'), (2, 'w')]),
            op(1, 1, Completion::Sync, &[(0, 'r'), (1, 'w')]),
        ],
        &[REGISTERS, SHARED, ACCUMULATOR],
        Tail::Peel,
    );
    let schedule = derive(&staged, &across).unwrap();
    assert_eq!(schedule.versions, [1, 1, 1]);
    assert_eq!(
        lines(&schedule),
        [
            "0 vmcnt(0) 2",
            "0 barrier 1 vmcnt(0) barrier 2",
            "barrier 1",
        ]
    );
}

#[test]
fn attention_waits_for_keys_before_values() {
    let cp = counted(Counter::CpAsync, 1);
    let attention = order(
        vec![
            op(0, 1, cp, &[(0, 'w')]),
            op(2, 1, cp, &[(1, 'w')]),
            op(1, 0, Completion::Sync, &[(0, 'r'), (2, 'w')]),
            op(3, 0, Completion::Sync, &[(1, 'r'), (2, 'r'), (3, 'w')]),
        ],
        &[SHARED, SHARED, REGISTERS, ACCUMULATOR],
        Tail::Guard,
    );
    let schedule = derive(&attention, &across).unwrap();
    assert_eq!(
        lines(&schedule),
        ["0 1 commit", "cp_async(0) barrier 0 1 commit 2 3"]
    );
}

#[test]
fn a_group_behind_needs_two_barriers() {
    let mut both = gemm(2, counted(Counter::Vmcnt, 4), Tail::Peel);
    both.lag = 1;
    let schedule = derive(&both, &across).unwrap();
    assert_eq!(
        lines(&schedule),
        [
            "0 1",
            "vmcnt(0) barrier barrier 0 1 2",
            "vmcnt(0) barrier barrier 2",
        ]
    );
}

/// A tile in two halves: the first is copied two iterations ahead, behind its own read, the second one
/// iteration ahead. Together they would take three versions; apart they take two.
#[test]
fn halves_of_a_tile_need_no_versions_for_each_other() {
    let copy = counted(Counter::Vmcnt, 2);
    let halves = order(
        vec![
            op(1, 1, copy, &[(0, 'w')]),
            op(2, 0, Completion::Sync, &[(0, 'r'), (1, 'w')]),
            op(0, 2, copy, &[(0, 'w')]),
            op(3, 0, Completion::Sync, &[(0, 'r'), (1, 'w')]),
        ],
        &[SHARED, ACCUMULATOR],
        Tail::Peel,
    );
    // Which half each touches.
    let half = [1, 0, 0, 1];
    let apart = |a: usize, _: usize, b: usize, _: usize| match half[a] == half[b] {
        true => Meeting::AcrossWarps,
        false => Meeting::Nowhere,
    };
    assert_eq!(derive(&halves, &across).unwrap().versions, [3, 1]);
    let two = derive(&halves, &apart).unwrap();
    assert_eq!(two.versions, [2, 1]);
    // The first half was copied two iterations ago, the second one ago; two copies are younger than each.
    let steady = "vmcnt(4) barrier 0 1 vmcnt(4) barrier 2 3";
    assert_eq!(line(&two.steady), steady);
}

#[test]
fn an_order_that_breaks_the_loop_is_refused() {
    let mut wrong = gemm(2, Completion::Sync, Tail::Peel);
    wrong.ops[2].distance = 2;
    assert!(matches!(
        derive(&wrong, &across),
        Err(OrderError::Breaks {
            earlier: 0,
            later: 2,
            resource: 0,
            iterations: 0
        })
    ));
    let registers = order(
        vec![
            op(0, 1, Completion::Sync, &[(0, 'w')]),
            op(1, 0, Completion::Sync, &[(0, 'r')]),
        ],
        &[REGISTERS],
        Tail::Peel,
    );
    assert_eq!(
        derive(&registers, &across),
        Err(OrderError::RegisterVersions {
            resource: 0,
            versions: 2
        })
    );
}

#[test]
fn what_nothing_waits_for_is_drained() {
    let lonely = order(
        vec![op(0, 0, counted(Counter::Vmcnt, 1), &[])],
        &[],
        Tail::Peel,
    );
    let schedule = derive(&lonely, &across).unwrap();
    assert_eq!(
        schedule.drain,
        [Step::Wait {
            counter: Counter::Vmcnt,
            at_most: 0
        }]
    );
}

/// One thing that happens in a run of the schedule.
#[derive(Clone, Copy, Debug)]
enum Event {
    Op {
        op: usize,
        iteration: i64,
    },
    /// A group is closed, empty or not.
    Commit(Counter),
    Wait(Counter, u32),
    Barrier,
}

/// The run at one trip count, written out.
fn run(order: &Order, schedule: &Schedule, trip: i64) -> Vec<Event> {
    let depth = i64::from(schedule.depth);
    let mut events = Vec::new();
    for it in -depth..trip {
        let section = if it < 0 {
            &schedule.prologue[(it + depth) as usize]
        } else if order.tail == Tail::Guard || it < trip - depth {
            &schedule.steady
        } else {
            &schedule.epilogue[(it - trip + depth) as usize]
        };
        for step in &section.steps {
            match *step {
                Step::Run(op) => {
                    let iteration = it + i64::from(order.ops[op].distance);
                    assert!(iteration >= 0);
                    if iteration < trip {
                        events.push(Event::Op { op, iteration });
                    }
                }
                Step::Commit(counter) => {
                    // In a peeled loop every commit has its ops; guarded ones may be empty.
                    events.push(Event::Commit(counter));
                }
                Step::Wait { counter, at_most } => events.push(Event::Wait(counter, at_most)),
                Step::Barrier => events.push(Event::Barrier),
                Step::WarpSync => {}
            }
        }
    }
    events
}

/// The first thing wrong with a run.
fn fault(order: &Order, schedule: &Schedule, trip: i64) -> Option<String> {
    let events = run(order, schedule, trip);
    // When, and in which barrier epoch, each op's effects are done.
    let mut done: Vec<Option<(usize, u32)>> = vec![None; events.len()];
    let mut epochs = vec![0u32; events.len()];
    let mut epoch = 0;
    let mut open: Vec<(usize, Counter)> = Vec::new();
    let mut queue: Vec<(Counter, Vec<usize>, u32)> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        epochs[at] = epoch;
        match *event {
            Event::Op { op, .. } => match order.ops[op].completion {
                Completion::Sync => done[at] = Some((at, epoch)),
                Completion::Counted { counter, .. } if counter.counts_groups() => {
                    open.push((at, counter));
                }
                Completion::Counted {
                    counter,
                    instructions,
                } => queue.push((counter, vec![at], instructions)),
            },
            Event::Commit(counter) => {
                let (own, rest) = open.iter().partition(|(_, c)| *c == counter);
                let own: Vec<(usize, Counter)> = own;
                open = rest;
                queue.push((counter, own.into_iter().map(|(at, _)| at).collect(), 1));
            }
            Event::Wait(counter, at_most) => {
                let mut younger = 0;
                for (own, ops, count) in queue.iter_mut().rev() {
                    if *own != counter {
                        continue;
                    }
                    if younger >= at_most {
                        for op in ops.drain(..) {
                            done[op] = Some((at, epoch));
                        }
                    }
                    younger += *count;
                }
            }
            Event::Barrier => epoch += 1,
        }
    }
    // Every pair on one version of one resource, in the order in which the loop means it.
    for (x, second) in events.iter().enumerate() {
        let &Event::Op {
            op: b,
            iteration: j,
        } = second
        else {
            continue;
        };
        for (y, first) in events.iter().enumerate() {
            let &Event::Op {
                op: a,
                iteration: i,
            } = first
            else {
                continue;
            };
            let earlier = (i, order.ops[a].program) < (j, order.ops[b].program);
            if !earlier {
                continue;
            }
            for p in &order.ops[a].touches {
                for q in &order.ops[b].touches {
                    let versions = i64::from(schedule.versions[p.resource]);
                    if p.resource != q.resource
                        || !(p.write || q.write)
                        || i % versions != j % versions
                    {
                        continue;
                    }
                    let named = format!("op {a} of {i}, then op {b} of {j}");
                    if y > x {
                        return Some(format!("wrong order: {named}"));
                    }
                    let Some((when, in_epoch)) = done[y] else {
                        return Some(format!("never done: {named}"));
                    };
                    if when > x {
                        return Some(format!("not waited for: {named}"));
                    }
                    let shared = order.resources[p.resource].space == Space::Shared;
                    if shared && in_epoch + order.lag >= epochs[x] {
                        return Some(format!("no barrier: {named}"));
                    }
                }
            }
        }
    }
    None
}

const TRIPS: std::ops::Range<i64> = 0..12;

fn any_fault(order: &Order, schedule: &Schedule) -> Option<String> {
    TRIPS
        .map(|trip| fault(order, schedule, trip))
        .find_map(|f| f)
}

/// Every schedule with one wait loosened or dropped or one barrier dropped.
fn weakened(schedule: &Schedule) -> Vec<(String, Schedule)> {
    let mut all = Vec::new();
    let sections = schedule.prologue.len() + 1 + schedule.epilogue.len();
    for at in 0..sections {
        fn section(s: &mut Schedule, at: usize) -> &mut Section {
            let prologue = s.prologue.len();
            if at < prologue {
                &mut s.prologue[at]
            } else if at == prologue {
                &mut s.steady
            } else {
                &mut s.epilogue[at - prologue - 1]
            }
        }
        for step in 0..section(&mut schedule.clone(), at).steps.len() {
            let mut other = schedule.clone();
            let steps = &mut section(&mut other, at).steps;
            let name = format!("section {at}, step {step}: {:?}", steps[step]);
            match &mut steps[step] {
                Step::Wait { counter, at_most } => {
                    let limit = if *counter == Counter::Lgkmcnt { 15 } else { 63 };
                    if *at_most == limit {
                        continue;
                    }
                    *at_most += 1;
                    all.push((name, other));
                }
                Step::Barrier => {
                    steps.remove(step);
                    all.push((name, other));
                }
                Step::Run(_) | Step::Commit(_) | Step::WarpSync => {}
            }
        }
    }
    all
}

/// A gemm in halves: four copies, four reads into registers, four products, in random places and
/// at random distances.
fn random_order() -> impl Strategy<Value = Order> {
    let copies = (
        proptest::collection::vec(1u32..4, 4),
        prop_oneof![
            Just((Counter::Vmcnt, Tail::Peel)),
            Just((Counter::CpAsync, Tail::Guard)),
        ],
        proptest::collection::vec(1u32..5, 4),
    );
    let keys = proptest::collection::vec(any::<u32>(), 12);
    let reads = proptest::collection::vec(prop_oneof![4 => Just(0u32), 1 => Just(1u32)], 4);
    (copies, reads, keys, any::<bool>(), 0u32..2).prop_map(
        |((distances, (counter, tail), counts), ahead, keys, lds, lag)| {
            let mut ops = Vec::new();
            let read = if lds && counter == Counter::Vmcnt {
                counted(Counter::Lgkmcnt, 4)
            } else {
                Completion::Sync
            };
            // Resources: 0..4 shared halves, 4..8 their registers, 8..12 accumulators.
            for half in 0..4 {
                let copy = counted(counter, counts[half]);
                ops.push(op(half, distances[half], copy, &[(half, 'w')]));
                let touches = [(half, 'r'), (4 + half, 'w')];
                ops.push(op(4 + half, ahead[half], read, &touches));
                let (a, b) = (half % 2, 2 + half / 2);
                let touches = [(4 + a, 'r'), (4 + b, 'r'), (8 + half, 'w')];
                ops.push(op(8 + half, 0, Completion::Sync, &touches));
            }
            let mut keyed: Vec<(u32, Op)> = keys.into_iter().zip(ops).collect();
            keyed.sort_by_key(|(key, _)| *key);
            let mut ops: Vec<Op> = keyed.into_iter().map(|(_, op)| op).collect();
            // Reads of an iteration come before its products, where both run in it.
            ops.sort_by_key(|o| (o.distance == 0 && o.program >= 8) as u32);
            let mut resources = vec![SHARED; 4];
            resources.extend([REGISTERS; 4]);
            resources.extend([ACCUMULATOR; 4]);
            Order {
                lag,
                ..order(ops, &resources, tail)
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn random_orders_are_right_and_minimal(order in random_order()) {
        let schedule = match derive(&order, &across) {
            Ok(schedule) => schedule,
            Err(OrderError::RegisterVersions { .. } | OrderError::Breaks { .. }) => {
                return Err(TestCaseError::reject("not an order"));
            }
        };
        prop_assert_eq!(any_fault(&order, &schedule), None, "{:#?}", lines(&schedule));
        for (name, weaker) in weakened(&schedule) {
            prop_assert!(
                any_fault(&order, &weaker).is_some(),
                "not needed: {} in {:#?}", name, lines(&schedule)
            );
        }
    }
}
