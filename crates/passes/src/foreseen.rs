//! What the passes behind one will make of its function, where it had to find out.
//!
//! A pass that decides by what comes of its function runs the passes behind it on a copy, and hands
//! on what they made with [`Changed::Foreseen`](crate::Changed): the driver takes it in their place.

use std::collections::VecDeque;

use tilewright_ir::{Diagnostics, Func, Target};

use crate::{Changed, PassInfo};

/// Passes in their order, each with what it makes of the function that those before it leave.
#[derive(Clone, Debug)]
pub struct Foreseen {
    /// The function as the last one leaves it, which may be one that refuses it.
    func: Func,
    passed: VecDeque<(&'static str, Passed)>,
}

/// What a pass came to that did not refuse the function.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    pub func: Func,
    pub changed: Changed,
    pub said: Diagnostics,
}

impl Foreseen {
    /// The function before all passes.
    pub(crate) fn new(func: &Func) -> Foreseen {
        Foreseen {
            func: func.clone(),
            passed: VecDeque::new(),
        }
    }

    pub(crate) fn func(&self) -> &Func {
        &self.func
    }

    /// Runs more passes, until one refuses the function; gives whether none does.
    pub(crate) fn run(
        &mut self,
        passes: impl Iterator<Item = &'static PassInfo>,
        target: Target,
    ) -> bool {
        for pass in passes {
            let mut said = Diagnostics::new();
            let changed = (pass.run)(&mut self.func, target, &mut said);
            // It will say so itself when its turn comes.
            if said.has_errors() {
                return false;
            }
            let passed = Passed {
                func: self.func.clone(),
                changed,
                said,
            };
            self.passed.push_back((pass.name, passed));
        }
        true
    }

    /// What the next pass comes to, if it is this one.
    pub(crate) fn take(&mut self, pass: &str) -> Option<Passed> {
        let next = self.passed.pop_front();
        next.filter(|(name, _)| *name == pass).map(|(_, made)| made)
    }
}
