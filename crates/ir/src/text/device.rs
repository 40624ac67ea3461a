//! Device operations: how each is printed and parsed.

use crate::device_op::{BarrierKind, Counter, DeviceOp};
use crate::text::parser::{Parser, Result1};
use crate::text::printer::Printer;

/// The words that device operations start with.
pub(super) const WORDS: &[&str] = &[
    "wait",
    "commit",
    "barrier",
    "fence",
    "set_prio",
    "iteration",
    "end_iteration",
    "sched_barrier",
    "sched_group_barrier",
    "barrier_init",
];

impl Printer<'_> {
    pub(super) fn device_op(&mut self, op: &DeviceOp) {
        match op {
            DeviceOp::Wait { counter, at_most } => {
                self.put_fmt(format_args!("wait {}({at_most})", counter.name()));
            }
            DeviceOp::WaitRead { at_most } => {
                let counter = Counter::TmaStore.name();
                self.put_fmt(format_args!("wait {counter}({at_most}) read"));
            }
            DeviceOp::Commit(counter) => self.put_fmt(format_args!("commit {}", counter.name())),
            DeviceOp::Barrier(kind) => {
                self.put("barrier ");
                match kind {
                    BarrierKind::Block => self.put("block"),
                    BarrierKind::Bare => self.put("bare"),
                    BarrierKind::Named { id, count } => {
                        self.put_fmt(format_args!("named({id}, {count})"));
                    }
                    BarrierKind::Cond(cond) => {
                        self.put("cond(");
                        self.expr(cond);
                        self.put(")");
                    }
                }
            }
            DeviceOp::Fence(kind) => self.put_fmt(format_args!("fence {}", kind.name())),
            DeviceOp::SetPrio(level) => self.put_fmt(format_args!("set_prio {level}")),
            DeviceOp::Iteration(Some(iteration)) => {
                self.put("iteration ");
                self.expr(iteration);
            }
            DeviceOp::Iteration(None) => self.put("end_iteration"),
            DeviceOp::Prefetch { address, bytes } => {
                self.put("prefetch ");
                self.expr(address);
                self.attr("bytes", Some(bytes));
            }
            DeviceOp::SchedBarrier(mask) => self.put_fmt(format_args!("sched_barrier {mask}")),
            DeviceOp::SchedGroupBarrier { mask, size, group } => {
                self.put("sched_group_barrier");
                self.attr("mask", Some(mask));
                self.attr("size", Some(size));
                self.attr("group", Some(group));
            }
            DeviceOp::BarrierInit {
                barrier,
                index,
                count,
            } => {
                self.put("barrier_init ");
                self.element(*barrier, std::slice::from_ref(index));
                self.attr("count", Some(count));
            }
        }
    }
}

impl<'t> Parser<'t> {
    /// The device operation of this name, if it is one.
    pub(super) fn device_op(&mut self, word: &str) -> Result1<Option<DeviceOp>> {
        Ok(Some(match word {
            "wait" => {
                let counter = self.word()?;
                self.expect("(")?;
                let at_most = self.number("a number of operations")?;
                self.expect(")")?;
                match counter == Counter::TmaStore && self.eat_word("read") {
                    true => DeviceOp::WaitRead { at_most },
                    false => DeviceOp::Wait { counter, at_most },
                }
            }
            "commit" => DeviceOp::Commit(self.word()?),
            "barrier" => DeviceOp::Barrier(self.barrier_kind()?),
            "fence" => DeviceOp::Fence(self.word()?),
            "set_prio" => DeviceOp::SetPrio(self.number("a priority")?),
            "iteration" => DeviceOp::Iteration(Some(self.expr()?)),
            "end_iteration" => DeviceOp::Iteration(None),
            "prefetch" => {
                let address = self.expr()?;
                self.expect_word("bytes")?;
                let bytes = self.eq_number("a number of bytes")?;
                DeviceOp::Prefetch { address, bytes }
            }
            "sched_barrier" => DeviceOp::SchedBarrier(self.number("a mask")?),
            "sched_group_barrier" => {
                self.expect_word("mask")?;
                let mask = self.eq_number("a mask")?;
                self.expect_word("size")?;
                let size = self.eq_number("a size")?;
                self.expect_word("group")?;
                let group = self.eq_number("a group")?;
                DeviceOp::SchedGroupBarrier { mask, size, group }
            }
            "barrier_init" => {
                let (barrier, index) = self.barrier_element()?;
                self.expect_word("count")?;
                let count = self.eq_number("a number of arrivals")?;
                DeviceOp::BarrierInit {
                    barrier,
                    index,
                    count,
                }
            }
            _ => return Ok(None),
        }))
    }

    fn barrier_kind(&mut self) -> Result1<BarrierKind> {
        let (word, span) = self.ident("a kind of barrier")?;
        Ok(match word {
            "block" => BarrierKind::Block,
            "bare" => BarrierKind::Bare,
            "named" => {
                self.expect("(")?;
                let id = self.number("a barrier id")?;
                self.expect(",")?;
                let count = self.number("a number of threads")?;
                self.expect(")")?;
                BarrierKind::Named { id, count }
            }
            "cond" => {
                self.expect("(")?;
                let cond = self.expr()?;
                self.expect(")")?;
                BarrierKind::Cond(cond)
            }
            _ => {
                let known = ["block", "bare", "named", "cond"];
                return Err(self.unknown_attr(word, span, &known));
            }
        })
    }
}
