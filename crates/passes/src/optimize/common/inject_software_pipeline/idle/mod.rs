//! How long matrix units wait in an iteration, by a compute unit in small.
//!
//! [`program`] reads off an order what a wave issues in a steady iteration: matrix instructions and the
//! reads that they wait for, copies and the waits for them, what vector units compute, barriers,
//! priorities. [`clock`] has the waves of a SIMD issue it again and again until iterations take as long
//! as those before. All SIMDs do the same, so one stands for them, and its accesses take shared memory
//! and memory as long as those of all. The model of compiled kernels (`docs/amd-cycles.md`) has the same
//! parts; here are no addresses, so no bank is asked twice, and no instructions that the compiler adds:
//! this ranks orders, it is no time.

mod clock;
mod program;

use tilewright_schedule::order::{Schedule, Served, Step};

use super::arrangement::Arrangement;
use super::schedules::Question;
use clock::Clock;
use program::Program;

/// What an iteration takes.
#[derive(Clone, Copy)]
pub(super) struct Iteration {
    /// Cycles in which the matrix units have nothing to do.
    pub idle: u32,
    /// Whether it is as long as copies take, so that a wait for all that were issued an iteration ago
    /// is for nothing.
    pub hides_copies: bool,
}

impl Iteration {
    /// With the barriers that the order asks for: with those that it needs beside them, and waits for
    /// copies, it takes longer.
    pub fn asked(question: Question<'_>, order: &Arrangement) -> Iteration {
        let mut steps = Vec::new();
        let mut first = 0;
        for cluster in &order.clusters {
            let behind = first + cluster.entries.len();
            steps.extend(cluster.meet.then_some(Step::Barrier));
            steps.extend((first..behind).map(Step::Run));
            first = behind;
        }
        Iteration::of(question, order, (&steps, &[]))
    }

    /// With all barriers and waits of its steady iteration.
    pub fn derived(question: Question<'_>, order: &Arrangement, schedule: &Schedule) -> Iteration {
        Iteration::of(question, order, (&schedule.steady.steps, &schedule.served))
    }

    fn of(question: Question<'_>, order: &Arrangement, steps: (&[Step], &[Served])) -> Iteration {
        let program = Program::of(question, order, steps);
        let threads = question.kernel.num_threads();
        let mut clock = Clock::new(question.machine, threads, &program, order.lag > 0);
        let took = clock.iteration();
        // Where nothing is multiplied, matrix units that idle say nothing of the order.
        let idle = match clock.multiplies() {
            0 => 0,
            busy => took.saturating_sub(busy),
        };
        Iteration {
            idle: u32::try_from(idle).unwrap_or(u32::MAX),
            hides_copies: took >= clock::COPY,
        }
    }
}
