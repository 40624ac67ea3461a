//! A warp at work: one instruction after another, until it has to wait.

use super::env::Env;
use super::program::{Op, Space};
use super::report::FindingKind;
use super::warp::{HELD, Lanes, Stuck, UNWRITTEN, Warp};
use crate::value::Trap;

/// Why a warp stopped running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pause {
    /// Its share of steps is used up, or a statement is over.
    Turn,
    /// It waits for all threads of the block.
    Block,
    /// It waits for some threads of the block.
    Named {
        id: u32,
        count: u32,
    },
    /// It waits for a phase of an arrival barrier.
    Mbarrier,
    /// It waits for all blocks.
    /// The warp waits for all blocks of its cluster.
    Cluster,
    Grid,
    Done,
    /// It cannot go on; what happened is reported.
    Failed,
}

impl Env<'_> {
    /// Runs a warp for at most `fuel` instructions, or to the end of its statement.
    pub fn run(&mut self, warp: &mut Warp, fuel: u64, one_statement: bool) -> Pause {
        let program = self.program;
        let start = program.stmt_of[warp.pc as usize];
        for _ in 0..fuel {
            warp.steps += 1;
            let op = &program.ops[warp.pc as usize];
            if let Some(next) = warp.control(op) {
                match next {
                    Ok(pc) => warp.pc = pc,
                    Err(stuck) => return self.stuck(warp, stuck),
                }
            } else {
                match self.instruction(warp, op) {
                    Pause::Turn => warp.pc += 1,
                    pause => return pause,
                }
            }
            if self.findings.is_enough() {
                return Pause::Failed;
            }
            if one_statement && program.stmt_of[warp.pc as usize] != start {
                break;
            }
        }
        Pause::Turn
    }

    /// Does an instruction that is not control flow; `Turn` goes on with the next.
    fn instruction(&mut self, warp: &mut Warp, op: &Op) -> Pause {
        match op {
            Op::Alu1 { .. } | Op::Alu2 { .. } | Op::Alu3 { .. } => {
                if let Err(bad) = warp.regs.run(op, warp.mask)
                    && warp.mask != 0
                {
                    self.report(warp, FindingKind::Undefined, Some(bad.lane), || {
                        match bad.trap {
                            Trap::Division => "division by zero".to_string(),
                            Trap::Shift(by) => {
                                format!("a shift by {by}, outside of the operand's width")
                            }
                            Trap::Undefined => {
                                "an operation that does not exist on this type".to_string()
                            }
                        }
                    });
                }
            }
            Op::Load { access, dst } => {
                let access = &self.program.accesses[*access as usize];
                self.before_access(warp, access.buffer);
                self.load(warp, access, dst);
            }
            Op::Store { access, values } => {
                let access = &self.program.accesses[*access as usize];
                self.before_access(warp, access.buffer);
                self.store(warp, access, values);
            }
            Op::Alloc { buffer } => self.alloc(warp, *buffer),
            Op::GiveUp { buffer } => self.give_up(warp, *buffer),
            Op::Assert {
                cond,
                message,
                assumed,
            } => {
                let bad = warp.mask & !warp.regs.truth(*cond, warp.mask);
                if bad != 0 {
                    let lane = Some(bad.trailing_zeros());
                    let (kind, default) = if *assumed {
                        (FindingKind::Assumption, "an assumption does not hold")
                    } else {
                        (FindingKind::Assertion, "an assertion does not hold")
                    };
                    self.report(warp, kind, lane, || {
                        if message.is_empty() {
                            default.to_string()
                        } else {
                            message.clone()
                        }
                    });
                }
            }
            Op::Micro(code) => {
                if code.counter.is_none() {
                    self.catch_up(warp);
                }
                self.micro(warp, code);
            }
            Op::Thread(code) => {
                self.catch_up(warp);
                let pause = self.thread(warp, code);
                // Only bare barriers leave accesses loose.
                if matches!(pause, Pause::Block | Pause::Grid) {
                    self.settle(warp);
                }
                return pause;
            }
            Op::Device(code) => return self.device(warp, code),
            Op::Halt => {
                self.end_of_stores(warp);
                return Pause::Done;
            }
            // Control flow is done by the warp itself.
            _ => {}
        }
        Pause::Turn
    }

    /// A warp's accesses to shared memory come in order.
    fn before_access(&mut self, warp: &mut Warp, buffer: u32) {
        let space = self.program.buffers[buffer as usize].space;
        if matches!(space, super::program::Space::Shared(_)) {
            self.catch_up(warp);
        }
    }

    /// Private memory becomes undefined.
    fn alloc(&mut self, warp: &mut Warp, buffer: u32) {
        let Some((base, len)) = self.private_bytes(buffer) else {
            return;
        };
        for lane in Lanes(warp.mask) {
            warp.local.set_flags(lane, base, len, UNWRITTEN);
        }
    }

    /// No product may be adding to registers that are given up.
    fn give_up(&mut self, warp: &mut Warp, buffer: u32) {
        let Some((base, len)) = self.private_bytes(buffer) else {
            return;
        };
        let held = |lane: &u32| (base..base + len).any(|at| warp.local.flag(*lane, at, 1) == HELD);
        if !warp.queue.is_empty()
            && let Some(lane) = Lanes(warp.mask).find(held)
        {
            let program = self.program;
            self.held_register(warp, lane, &program.buffers[buffer as usize], "given up");
        }
    }

    /// The first byte of a private buffer, and how many it has.
    fn private_bytes(&self, buffer: u32) -> Option<(usize, usize)> {
        let info = &self.program.buffers[buffer as usize];
        let Space::Local(base) = info.space else {
            return None;
        };
        let count = (info.shape.iter().product::<i64>() as usize) * info.lanes as usize;
        Some((base as usize, (count * info.bits() as usize).div_ceil(8)))
    }

    #[cold]
    fn stuck(&mut self, warp: &Warp, stuck: Stuck) -> Pause {
        match stuck {
            Stuck::Step(lane) => self.report(warp, FindingKind::Undefined, Some(lane), || {
                "a loop with the step zero".to_string()
            }),
            Stuck::Structure => self.report(warp, FindingKind::Undefined, None, || {
                "control flow that does not nest".to_string()
            }),
        }
        Pause::Failed
    }
}
