//! The statements of a loop's body as the schedule engine sees them.

use tilewright_ir::{Buffer, Func, Scope};
use tilewright_schedule::order::{Completion, Op, Order, Resource, Space, Tail, Touch};

use super::effects::Effects;

/// A statement that has a place in a steady iteration.
pub(super) struct Placed<'a> {
    /// With those of the names that it uses.
    pub effects: &'a Effects,
    /// Iterations ahead of the loop's index.
    pub distance: u32,
    /// Its place in the body as it was written.
    pub program: usize,
    pub completion: Completion,
}

/// The order of the statements, and the buffers of its resources. What the loop only reads orders
/// nothing, and is no resource.
pub(super) fn order_of(
    func: &Func,
    placed: &[Placed<'_>],
    versioned: &[Buffer],
    tail: Tail,
) -> (Order, Vec<Buffer>) {
    let writes = placed.iter().flat_map(|p| p.effects.writes.iter().copied());
    let mut buffers: Vec<Buffer> = writes.collect();
    buffers.sort_unstable();
    buffers.dedup();
    let resources = buffers.iter().map(|b| Resource {
        space: match func.buffers[*b].scope {
            Scope::Shared => Space::Shared,
            Scope::Global => Space::Global,
            _ => Space::Register,
        },
        private: versioned.contains(b),
    });
    let ops = placed.iter().map(|stmt| {
        let all = buffers.iter().enumerate();
        let touched = all.filter(|(_, b)| stmt.effects.touches(**b));
        let touches = touched.map(|(resource, b)| Touch {
            resource,
            write: stmt.effects.writes.contains(b),
        });
        Op {
            distance: stmt.distance,
            touches: touches.collect(),
            completion: stmt.completion,
            program: stmt.program,
        }
    });
    let order = Order {
        ops: ops.collect(),
        resources: resources.collect(),
        barriers: vec![0; placed.len()],
        lag: 0,
        tail,
        trip: None,
        spare: 0,
    };
    (order, buffers)
}
