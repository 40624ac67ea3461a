//! What the warps of a block share: memory, barriers, reports and counts.

use tilewright_ir::{Counter, Target};

use super::bulk::Bulk;
use super::counts::{Counts, InstKind};
use super::global_shadow::GlobalShadow;
use super::memory::Memory;
use super::program::{Op, Program, Slot, Space};
use super::report::{Collector, Finding, FindingKind, FindingPlace};
use super::shared::{Past, Shared, Trouble, Who};
use super::sync::Barriers;
use super::warp::Warp;
use super::{Landing, banks};

/// The surroundings of a warp.
pub(super) struct Env<'a> {
    pub program: &'a Program,
    pub target: Target,
    pub landing: Landing,
    pub globals: Memory<'a>,
    pub shared: Shared,
    pub global_shadow: GlobalShadow,
    pub barriers: Barriers,
    pub bulk: Bulk,
    pub findings: Collector,
    pub counts: Vec<Counts>,
    pub prints: Vec<String>,
    /// The indices of the blocks that run together.
    pub blocks: Vec<Vec<u64>>,
    pub next_token: u64,
}

/// Which memory an access is to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Which {
    Shared,
    /// The number of a storage.
    Global(u32),
}

/// Lines that a block may print; more are dropped.
const MAX_PRINTS: usize = 10_000;

impl Env<'_> {
    /// The statement that a warp is at.
    pub fn stmt(&self, warp: &Warp) -> u32 {
        self.program.stmt_of[warp.pc as usize]
    }

    pub fn count(&mut self, warp: &Warp, kind: InstKind) {
        let stmt = self.stmt(warp) as usize;
        self.counts[stmt].count(kind);
    }

    /// Counts what an access of `bytes` a lane costs the banks of shared memory.
    pub fn count_banks(
        &mut self,
        warp: &Warp,
        kind: banks::Kind,
        bytes: u32,
        lanes: &[Option<u32>],
    ) {
        let cost = banks::cost(self.target, kind, bytes, lanes);
        let stmt = self.stmt(warp) as usize;
        self.counts[stmt].add_cost(cost);
    }

    pub fn print(&mut self, line: String) {
        if self.prints.len() < MAX_PRINTS {
            self.prints.push(line);
        }
    }

    /// Numbers the access of a warp's current statement.
    pub fn instance(&mut self, warp: &Warp, which: Which, atomic: bool, writes: bool) -> u32 {
        let stmt = self.stmt(warp);
        let loops = &self.program.stmts[stmt as usize].loops;
        let indices = |out: &mut Vec<i64>| {
            for (_, slot) in loops.iter() {
                match *slot {
                    Slot::One(i) => out.push(warp.regs.ones[i as usize] as i64),
                    slot => {
                        let lanes = 0..warp.width as usize;
                        out.extend(lanes.map(|lane| warp.regs.lane(slot, lane) as i64));
                    }
                }
            }
        };
        let who = (stmt, warp.index, warp.own_clock());
        let Which::Shared = which else {
            let shadow = &mut self.global_shadow.shadow;
            return shadow.instance(who, atomic, writes, indices);
        };
        let counter = match &self.program.ops[warp.pc as usize] {
            Op::Micro(code) => code.counter,
            _ => None,
        };
        let id = match counter {
            None if self.target.machine().shared.counter.is_some() => {
                let who = (stmt, warp.index);
                self.shared.loose_instance(who, atomic, writes, indices)
            }
            _ => self.shared.instance(who, atomic, writes, indices),
        };
        if matches!(counter, None | Some(Counter::Lgkmcnt)) {
            self.shared.keep_order(id);
        }
        id
    }

    /// All of the warp's accesses to shared memory that no counter follows are complete.
    pub fn settle(&mut self, warp: &Warp) {
        self.shared.settle(warp.index, warp.own_clock());
    }

    /// Others may go on by what a warp has done.
    pub fn hand_over(&mut self, warp: u32) {
        if let Some(proxies) = &mut self.shared.proxies {
            proxies.hand_over(warp);
        }
    }

    /// All that threads did so far is ordered before what comes, with this clock.
    pub fn all_ordered(&mut self, clock: &[u32]) {
        // A bulk load that nobody waited for is not.
        if self.barriers.all_heard(clock) {
            self.shared.all_ordered();
        }
        self.global_shadow.shadow.all_ordered();
    }

    /// The place of a warp's current statement.
    pub fn place(&self, warp: &Warp, lane: Option<u32>) -> FindingPlace {
        let stmt = &self.program.stmts[self.stmt(warp) as usize];
        let at = lane.unwrap_or(warp.first()) as usize;
        let value = |slot: &Slot| warp.regs.lane(*slot, at) as i64;
        FindingPlace {
            span: stmt.span,
            what: stmt.what.clone(),
            block: self.blocks[warp.rank as usize].clone(),
            thread: lane.map(|lane| warp.thread(lane)),
            warp: warp.index - warp.first_of_block,
            iteration: stmt
                .loops
                .iter()
                .map(|(name, slot)| (name.clone(), value(slot)))
                .collect(),
        }
    }

    /// The block of a warp in its cluster, and the warp's number there.
    pub fn of_block(&self, warp: u32, width: u32) -> (usize, u32) {
        let in_block = (self.program.num_threads() as u32).div_ceil(width);
        ((warp / in_block) as usize, warp % in_block)
    }

    /// The place of an access in the past.
    fn past_place(&self, past: &Past, width: u32) -> FindingPlace {
        let stmt = &self.program.stmts[past.instance.stmt as usize];
        let (rank, warp) = self.of_block(past.instance.warp, width);
        let mut values = past.iteration.iter();
        let mut iteration = Vec::new();
        for (name, slot) in stmt.loops.iter() {
            let lanes = if slot.is_one() { 1 } else { width as usize };
            let own: Vec<i64> = values.by_ref().take(lanes).copied().collect();
            let at = if slot.is_one() { 0 } else { past.lane as usize };
            iteration.extend(own.get(at).map(|&v| (name.clone(), v)));
        }
        FindingPlace {
            span: stmt.span,
            what: stmt.what.clone(),
            block: self.blocks[rank].clone(),
            thread: Some(warp * width + past.lane),
            warp,
            iteration,
        }
    }

    /// Reports something at a warp's current statement.
    #[cold]
    pub fn report(
        &mut self,
        warp: &Warp,
        kind: FindingKind,
        lane: Option<u32>,
        message: impl FnOnce() -> String,
    ) {
        let stmt = self.stmt(warp);
        if self.findings.known(kind, stmt, stmt) {
            return;
        }
        let finding = Finding {
            kind,
            message: message(),
            place: self.place(warp, lane),
            others: Vec::new(),
            count: 1,
        };
        self.findings.add(stmt, stmt, finding);
    }

    /// Reports something between a warp's current statement and one in the past.
    #[cold]
    fn report_pair(
        &mut self,
        warp: &Warp,
        kind: FindingKind,
        (lane, writes): (u32, bool),
        past: Option<Past>,
        message: impl FnOnce(&Self) -> String,
    ) {
        let stmt = self.stmt(warp);
        let other = past.as_ref().map_or(stmt, |p| p.instance.stmt);
        if self.findings.known(kind, stmt, other) {
            return;
        }
        let others = past.iter().map(|p| {
            let place = self.past_place(p, warp.width);
            place.doing(p.instance.writes)
        });
        let finding = Finding {
            kind,
            message: message(self),
            place: self.place(warp, Some(lane)).doing(writes),
            others: others.collect(),
            count: 1,
        };
        self.findings.add(stmt, other, finding);
    }

    /// Reports what an access ran into.
    #[cold]
    pub fn trouble(
        &mut self,
        warp: &Warp,
        which: Which,
        lane: u32,
        writes: bool,
        trouble: Trouble,
    ) {
        let past = |env: &Self, stamp| match which {
            Which::Shared => env.shared.past(stamp),
            Which::Global(_) => env.global_shadow.shadow.past(stamp),
        };
        if let Some((stamp, at)) = trouble.race {
            let past = past(self, stamp);
            let both = writes && past.as_ref().is_some_and(|p| p.instance.writes);
            let (kind, verb) = match (both, writes) {
                (true, _) => (FindingKind::WriteWriteRace, "written by two threads"),
                (false, true) => (
                    FindingKind::ReadWriteRace,
                    "overwritten while another thread may read it",
                ),
                (false, false) => (
                    FindingKind::ReadWriteRace,
                    "read while another thread may write it",
                ),
            };
            let loose = past.as_ref().is_some_and(|p| p.instance.is_loose());
            self.report_pair(warp, kind, (lane, writes), past, |env| {
                let name = env.name_of_byte(which, at);
                let why = match loose {
                    true => "no barrier between them with a wait for LDS before it",
                    false => "no barrier between them",
                };
                format!("{name} is {verb}: {why}")
            });
        }
        if let Some((stamp, at, lane)) = trouble.unordered_lane {
            let past = past(self, stamp);
            let kind = FindingKind::RaceInWarp;
            self.report_pair(warp, kind, (lane, writes), past, |env| {
                let name = env.name_of_byte(which, at);
                let verb = if writes { "written" } else { "read" };
                format!(
                    "{name} is {verb} after another lane's access: no warp barrier between them"
                )
            });
        }
        if let Some((stamp, at)) = trouble.conflict {
            let past = past(self, stamp);
            self.report_pair(
                warp,
                FindingKind::LaneConflict,
                (lane, writes),
                past,
                |env| {
                    format!(
                        "lanes of one instruction write different values to {}",
                        env.name_of_byte(which, at)
                    )
                },
            );
        }
        if let Some(at) = trouble.held {
            let past = self.shared.holder(at);
            let verb = if writes { "written" } else { "read" };
            self.report_pair(
                warp,
                FindingKind::NotWaitedFor,
                (lane, writes),
                past,
                |env| {
                    format!(
                        "{} is {verb} while an asynchronous operation on it is under way",
                        env.name_of_byte(which, at)
                    )
                },
            );
        }
        if let Some(at) = trouble.unwritten {
            let name = self.name_of_byte(which, at);
            self.report(warp, FindingKind::Uninitialised, Some(lane), || {
                format!("{name} is read but nothing wrote it")
            });
        }
        if let Some(at) = trouble.foreign {
            let name = self.name_of_byte(which, at);
            let last = self.shared.owner_of(at).unwrap_or(0);
            let other = self.program.buffers.iter().find(|b| b.owner == last);
            let other = other.map_or("?", |b| b.name.as_str()).to_string();
            self.report(warp, FindingKind::Uninitialised, Some(lane), || {
                format!("{name} is read, but `{other}` lies at the same place and was written last")
            });
        }
    }

    /// The name of a buffer in a memory.
    pub fn buffer_name(&self, space: Space) -> &str {
        let found = self.program.buffers.iter().find(|b| b.space == space);
        found.map_or("?", |b| b.name.as_str())
    }

    /// Which buffer a byte belongs to, and in shared memory its place in it.
    fn name_of_byte(&self, which: Which, at: usize) -> String {
        if let Which::Global(storage) = which {
            return format!(
                "an element of `{}`",
                self.buffer_name(Space::Global(storage))
            );
        }
        let at = at % self.program.shared_bytes.max(1);
        let mut best: Option<(&str, usize)> = None;
        for info in &self.program.buffers {
            if let Space::Shared(base) = info.space
                && base as usize <= at
                && (!self.program.shared_overlaps || info.owner == self.shared.owner())
                && best.is_none_or(|(_, b)| (base as usize) > b)
            {
                best = Some((&info.name, base as usize));
            }
        }
        match best {
            Some((name, base)) => format!("byte {} of `{name}`", at - base),
            None => format!("byte {at} of shared memory"),
        }
    }
}

/// Who a lane of a warp is to the shadow of shared memory.
pub(super) fn who(warp: &Warp, id: u32, lane: u32, atomic: bool) -> Who<'_> {
    Who {
        id,
        lane,
        lanes: 1 << lane,
        warp: warp.index,
        clock: &warp.clock,
        atomic,
    }
}
