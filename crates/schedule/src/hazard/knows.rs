//! What a group knows of what the others have done.

use rustc_hash::FxHashMap;
use tilewright_ir::Buffer;

use super::scan::MAX_GROUPS;

/// An arrival barrier of a block of the cluster: the block's number there, the buffer and the index.
pub type Barrier = (usize, Buffer, i64);

/// Up to which clock of each group, and how many phases of each arrival barrier: bulk loads are
/// complete with the phase that hears of them.
#[derive(Clone, Default, Debug)]
pub struct Knows {
    groups: [u32; MAX_GROUPS],
    phases: FxHashMap<Barrier, u32>,
}

impl Knows {
    /// The clock of a group up to which all is known.
    pub fn of(&self, group: usize) -> u32 {
        self.groups[group]
    }

    /// The phases of a barrier that are known to be complete.
    pub fn phases_of(&self, barrier: Barrier) -> u32 {
        self.phases.get(&barrier).copied().unwrap_or(0)
    }

    pub fn learn(&mut self, group: usize, clock: u32) {
        self.groups[group] = self.groups[group].max(clock);
    }

    pub fn learn_phases(&mut self, barrier: Barrier, completed: u32) {
        let own = self.phases.entry(barrier).or_default();
        *own = completed.max(*own);
    }

    pub fn join(&mut self, other: &Knows) {
        for (group, clock) in other.groups.iter().enumerate() {
            self.learn(group, *clock);
        }
        for (barrier, completed) in &other.phases {
            self.learn_phases(*barrier, *completed);
        }
    }

    /// Whether all that another knows of groups is known too; of one it need not be.
    pub fn covers(&self, other: &Knows, but: Option<usize>) -> bool {
        let mut groups = (0..MAX_GROUPS).filter(|g| Some(*g) != but);
        groups.all(|g| self.groups[g] >= other.groups[g])
    }
}
