//! Loads that saw what they should not: nothing orders them and a write, or nothing had written.
//!
//! Compilers load ahead of conditions where the address is good in any case, so that lanes load
//! what they do not use, and another wave may be writing it. LLVM's memory model has such a load
//! give some value, and no harm is done. So a load is wrong only where its value is used; the
//! first run of a launch notes the loads, and a second one, step by step the same, follows what
//! they loaded ([`super::unknown`]).

use rustc_hash::FxHashMap;

use std::collections::hash_map::Entry;

use super::order::{Agent, Stamp};
use super::report::{Finding, Kind};

/// More loads than this are not told apart: all of them count as used.
const MOST: usize = 1 << 16;

/// A place that a load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// A byte of LDS.
    Lds(u32),
    /// The address of an element.
    Memory(u64),
}

/// Loads of one agent: those behind the `after`th operation up to the `until`th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reads {
    pub agent: Agent,
    pub after: u32,
    pub until: u32,
}

impl Reads {
    /// One load.
    pub fn one(stamp: Stamp) -> Self {
        Self {
            agent: stamp.agent,
            after: stamp.time - 1,
            until: stamp.time,
        }
    }
}

/// Who reads what: the block, one of its agents, and the place.
type Reader = (u32, Agent, Cell);

/// Behind which operation, up to which, and the number of the finding.
type Noted = (u32, u32, u32);

/// The loads that a run noted, each with what is found if it is used.
#[derive(Clone, Debug, Default)]
pub struct Suspects {
    loads: FxHashMap<Reader, Vec<Noted>>,
    findings: Vec<Finding>,
    known: FxHashMap<(Kind, usize, Option<usize>), u32>,
    count: usize,
}

impl Suspects {
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether each of the loads is there.
    pub fn are_all(&self) -> bool {
        self.count <= MOST
    }

    /// Notes loads of a block.
    pub fn note(&mut self, block: u32, reads: Reads, cell: Cell, finding: Finding) {
        let key = (finding.kind, finding.at, finding.other);
        let finding = match self.known.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.findings.push(finding);
                *new.insert(self.findings.len() as u32 - 1)
            }
        };
        self.insert(block, reads, cell, finding);
    }

    fn insert(&mut self, block: u32, reads: Reads, cell: Cell, finding: u32) {
        let entry = (reads.after, reads.until, finding);
        let loads = self.loads.entry((block, reads.agent, cell)).or_default();
        if self.count <= MOST && !loads.contains(&entry) {
            loads.push(entry);
            self.count += 1;
        }
    }

    pub fn extend(&mut self, other: Suspects) {
        for ((block, agent, cell), list) in other.loads {
            for (after, until, finding) in list {
                let finding = other.findings[finding as usize].clone();
                let reads = Reads {
                    agent,
                    after,
                    until,
                };
                self.note(block, reads, cell, finding);
            }
        }
    }

    /// What is found of this load of a place, if its value is used.
    pub fn of(&self, block: u32, stamp: Stamp, cell: Cell) -> Option<u32> {
        let loads = self.loads.get(&(block, stamp.agent, cell))?;
        let is = |(after, until, _): &&(u32, u32, u32)| (after + 1..=*until).contains(&stamp.time);
        loads.iter().find(is).map(|(_, _, finding)| *finding)
    }
}
