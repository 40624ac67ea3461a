//! Loops: the runs of text between a label and a branch back to it.
//!
//! LLVM lays the blocks of a loop out side by side, so a backward branch and its target bound the
//! loop in the text. A block that a loop keeps elsewhere is not seen as part of it.

use std::cmp::Reverse;

use super::{Function, Instruction};

/// A loop of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The first instruction.
    pub first: usize,
    /// The branch back.
    pub last: usize,
}

impl Loop {
    pub fn body(self, function: &Function) -> &[Instruction] {
        function
            .instructions
            .get(self.first..=self.last)
            .unwrap_or_default()
    }

    fn holds(self, other: Self) -> bool {
        self != other && self.first <= other.first && other.last <= self.last
    }
}

impl Function {
    /// All loops, in the order of their branches. Branches back to one label are one loop.
    pub fn loops(&self) -> Vec<Loop> {
        let mut loops: Vec<Loop> = Vec::new();
        for (last, instruction) in self.instructions.iter().enumerate() {
            let Some(first) = instruction
                .target()
                .and_then(|label| self.labels.get(label))
            else {
                continue;
            };
            // A branch back to a block that was laid out earlier closes no loop where the kernel
            // ends in between.
            let ends = |i: &Instruction| i.mnemonic == "s_endpgm";
            if *first > last || self.instructions[*first..last].iter().any(ends) {
                continue;
            }
            match loops.iter_mut().find(|known| known.first == *first) {
                Some(known) => known.last = last,
                None => loops.push(Loop {
                    first: *first,
                    last,
                }),
            }
        }
        loops
    }

    /// The loop that a kernel's time goes into: the one with most matrix instructions that are in
    /// no loop inside it (of equal ones the shortest, which is the inner one), or where none has
    /// any, the longest innermost one.
    pub fn hot_loop(&self) -> Option<Loop> {
        let loops = self.loops();
        let inside = |l: Loop| loops.iter().filter(move |other| l.holds(**other));
        let matrix = |l: Loop| {
            let own = (l.first..=l.last).filter(|at| {
                let deeper = inside(l).any(|i| (i.first..=i.last).contains(at));
                !deeper && self.instructions.get(*at).is_some_and(Instruction::is_mfma)
            });
            own.count()
        };
        let counted = loops.iter().map(|l| (matrix(*l), *l));
        match counted.max_by_key(|(count, l)| (*count, Reverse(l.body(self).len()))) {
            Some((count, hot)) if count > 0 => Some(hot),
            _ => {
                let innermost = loops.iter().filter(|l| inside(**l).next().is_none());
                innermost.copied().max_by_key(|l| l.body(self).len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    const TEXT: &str = "\
f:
.LBB0_1:
\ts_nop 0
.LBB0_2:
\tv_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], v[0:3]
\ts_cbranch_scc0 .LBB0_2
.LBB0_3:
\ts_nop 1
\ts_nop 1
\ts_nop 1
\ts_cbranch_scc0 .LBB0_3
\ts_cbranch_scc1 .LBB0_4
\ts_cbranch_scc0 .LBB0_1
.LBB0_4:
\ts_endpgm
";

    #[test]
    fn the_hot_loop_has_the_matrix_instructions() {
        let program = parse(TEXT).unwrap();
        let function = &program.functions[0];
        let loops = function.loops();
        assert_eq!(loops.len(), 3);
        let hot = function.hot_loop().unwrap();
        assert_eq!((hot.first, hot.last), (1, 2));
        assert_eq!(hot.body(function).len(), 2);
    }

    #[test]
    fn without_matrix_instructions_the_longest_innermost_loop_is_hot() {
        let program = parse(&TEXT.replace("v_mfma_f32_16x16x32_bf16", "v_other")).unwrap();
        let function = &program.functions[0];
        let hot = function.hot_loop().unwrap();
        assert_eq!((hot.first, hot.last), (3, 6));
        assert_eq!(
            parse("f:\n s_endpgm\n").unwrap().functions[0].hot_loop(),
            None
        );
    }
}
