//! How long matrix units wait, read off an order.
//!
//! The entries of a steady iteration are given to the waves of a SIMD, again and again, and to what they
//! share: a matrix unit and a vector unit, shared memory, memory ([`clock`]). What an entry asks of these is
//! read off its micro-ops ([`work`]). Between two barriers stands a *phase*: waves meet behind it, having
//! waited for what the order makes others wait for. Of halves of a block a barrier apart the second is in the
//! phase that the first has left.
//!
//! What brings parts of tiles takes longer at both ends of the loop, where what may not run stands under
//! conditions: where nobody knows how often the loop runs, each iteration bears a share of that.
//!
//! No bank is asked twice, addresses cost nothing, and memory serves nobody else: this ranks orders, it is no
//! time.

mod clock;
mod work;

use tilewright_schedule::order::{Schedule, Step};

use super::arrangement::Arrangement;
use super::schedules::Question;
use clock::Clock;
use work::Work;

/// What an iteration takes.
#[derive(Clone, Copy)]
pub(super) struct Iteration {
    /// Cycles in which the matrix units have nothing to do, with the iteration's share of the loop's ends.
    pub idle: u32,
    /// Whether it is as long as copies take, so that a wait for all that were issued an iteration ago
    /// is for nothing.
    pub hides_copies: bool,
}

impl Iteration {
    /// With the barriers that the order asks for: with those that it needs beside them, and with its waits, it
    /// takes longer.
    pub fn asked(question: Question<'_>, order: &Arrangement) -> Iteration {
        let mut phases = Phases::default();
        let mut first = 0;
        for cluster in &order.clusters {
            if cluster.meet {
                phases.meet(Vec::new());
            }
            let behind = first + cluster.entries.len();
            phases.last().extend((first..behind).map(Act::Run));
            first = behind;
        }
        Iteration::of(question, order, phases)
    }

    /// With all barriers and waits of its steady iteration.
    pub fn derived(question: Question<'_>, order: &Arrangement, schedule: &Schedule) -> Iteration {
        let mut phases = Phases::default();
        for (at, step) in schedule.steady.steps.iter().enumerate() {
            match step {
                Step::Barrier => {
                    let served = schedule.served.iter().filter(|s| s.step == at);
                    phases.meet(served.map(|s| s.earlier).collect());
                }
                Step::Run(op) => phases.last().push(Act::Run(*op)),
                Step::Wait { at_most, .. } => phases.last().push(Act::Wait(*at_most)),
                Step::Commit(_) | Step::WarpSync => {}
            }
        }
        Iteration::of(question, order, phases)
    }

    fn of(question: Question<'_>, order: &Arrangement, phases: Phases) -> Iteration {
        let work = Work::of(question, order);
        let waves = (work::waves(question), question.machine.simds);
        let mut clock = Clock::new(&work, waves, order.lag > 0);
        let took = clock.run(&phases.closed());
        let (more, trips) = ends(question, order);
        // Where nothing is multiplied, matrix units that idle say nothing of the order.
        let idle = match clock.busy() {
            0 => 0,
            busy => took.saturating_sub(busy) + took * more / trips,
        };
        Iteration {
            idle: u32::try_from(idle).unwrap_or(u32::MAX),
            hides_copies: took >= clock::COPY,
        }
    }
}

/// How many iterations more the ends of the loop take by an order, and how often it is supposed to run,
/// where that is not known.
fn ends(question: Question<'_>, order: &Arrangement) -> (u64, u64) {
    const MORE: u64 = 2;
    const SUPPOSED: u64 = 8;
    let unknown = question.l.axes[0].const_trip_count().is_none();
    let more = if unknown && order.split.p > 1 {
        MORE
    } else {
        0
    };
    (more, SUPPOSED)
}

/// What a wave does.
#[derive(Clone, Copy)]
enum Act {
    /// An entry of the order, by its place.
    Run(usize),
    /// Until so many of the copies that it issued are under way.
    Wait(u32),
}

/// What waves do before they meet, or at all.
#[derive(Default)]
struct Phase {
    acts: Vec<Act>,
    /// Where a barrier follows: the entries whose reads and stores it waits for.
    meets: Option<Vec<usize>>,
}

/// The phases of an iteration.
#[derive(Default)]
struct Phases {
    before: Vec<Phase>,
    open: Phase,
}

impl Phases {
    fn last(&mut self) -> &mut Vec<Act> {
        &mut self.open.acts
    }

    fn meet(&mut self, done: Vec<usize>) {
        let mut met = std::mem::take(&mut self.open);
        met.meets = Some(done);
        self.before.push(met);
    }

    /// What stands behind the last barrier is followed by what stands before the first.
    fn closed(mut self) -> Vec<Phase> {
        if self.before.is_empty() {
            return vec![self.open];
        }
        let first = self.before.remove(0);
        self.open.acts.extend(first.acts);
        self.open.meets = first.meets;
        self.before.push(self.open);
        self.before
    }
}
