//! Loops: the blocks between a way back and the block it leads to, which every way into the loop
//! passes.
//!
//! Where blocks stand in the text says nothing of loops: LLVM lays the arms of conditions out
//! behind the code that follows them, and branches back to it.

use std::cmp::Reverse;
use std::ops::Range;

use super::blocks::{Blocks, Ways, run_order};
use super::{Function, Instruction};

/// Turns that are supposed of a loop of which nothing is known.
const TURNS: usize = 8;

/// Loops around a loop beyond which no more is supposed of it.
const DEEP: usize = 4;

/// What so many instructions of a loop weigh, with so many loops around it. Who looks for the hot loop of
/// a kernel elsewhere than in its code weighs by this too, or may find another one.
pub fn weight(instructions: usize, around: usize) -> usize {
    instructions.saturating_mul(TURNS.pow(around.min(DEEP) as u32))
}

/// A loop of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Its instructions, block by block, in an order in which a turn can run them.
    blocks: Vec<Range<usize>>,
}

impl Loop {
    /// The instructions in an order in which a turn can run them: what comes after something on
    /// every way stands behind it.
    pub fn body<'f>(&self, function: &'f Function) -> Vec<&'f Instruction> {
        let ranges = self.blocks.iter().cloned();
        let parts = ranges.filter_map(|range| function.instructions.get(range));
        parts.flatten().collect()
    }

    /// The index of its first instruction, which every turn passes.
    pub fn head(&self) -> Option<usize> {
        self.blocks.first().map(|block| block.start)
    }

    fn holds(&self, other: &Self) -> bool {
        self != other && other.blocks.iter().all(|block| self.blocks.contains(block))
    }

    /// Whether an instruction is one of it.
    pub fn has(&self, index: usize) -> bool {
        self.blocks.iter().any(|block| block.contains(&index))
    }
}

impl Function {
    /// All loops, in the order of their first blocks. Ways back to one block are one loop.
    pub fn loops(&self) -> Vec<Loop> {
        Self::loops_among(&Blocks::of(self))
    }

    fn loops_among(blocks: &Blocks) -> Vec<Loop> {
        let mut before = vec![Vec::new(); blocks.next.len()];
        for (block, ways) in blocks.next.iter().enumerate() {
            for to in ways {
                before[*to].push(block);
            }
        }
        let mut members: Vec<Vec<bool>> = Vec::new();
        let mut heads = Vec::new();
        for (head, from) in before.iter().enumerate() {
            let back = from.iter().filter(|from| blocks.dominates(head, **from));
            let mut work: Vec<usize> = back.copied().collect();
            if work.is_empty() {
                continue;
            }
            let mut inside = vec![false; before.len()];
            inside[head] = true;
            while let Some(block) = work.pop() {
                if !std::mem::replace(&mut inside[block], true) {
                    work.extend(&before[block]);
                }
            }
            heads.push(head);
            members.push(inside);
        }
        let depth = |block: usize| members.iter().filter(|inside| inside[block]).count();
        let of = |(head, inside): (&usize, &Vec<bool>)| {
            let stays = |to: &usize| inside[*to] && to != head;
            let next: Vec<Ways> = blocks
                .next
                .iter()
                .map(|ways| ways.iter().copied().filter(stays).collect())
                .collect();
            // What follows an inner loop comes behind all of it.
            let order = run_order(*head, &next, |_, to| (depth(to), Reverse(to)));
            Loop {
                blocks: order.iter().map(|b| blocks.ranges[*b].clone()).collect(),
            }
        };
        heads.iter().zip(&members).map(of).collect()
    }

    /// The loop that a kernel's time goes into: the one with most matrix instructions that are in
    /// no loop inside it, weighed by the loops around it ([`weight`]; of equal ones the shortest, which is
    /// the inner one), or where none has any, the longest innermost one.
    pub fn hot_loop(&self) -> Option<Loop> {
        self.hot_loop_among(&Blocks::of(self))
    }

    /// The same where the function's blocks are known.
    pub(crate) fn hot_loop_among(&self, blocks: &Blocks) -> Option<Loop> {
        let loops = Self::loops_among(blocks);
        let inside = |l: &Loop| -> Vec<&Loop> { loops.iter().filter(|o| l.holds(o)).collect() };
        let matrix = |l: &Loop| {
            let deeper = inside(l);
            let own = l.blocks.iter().cloned().flatten().filter(|at| {
                let is_matrix = self.instructions.get(*at).is_some_and(Instruction::is_mfma);
                is_matrix && !deeper.iter().any(|inner| inner.has(*at))
            });
            let around = loops.iter().filter(|outer| outer.holds(l)).count();
            weight(own.count(), around)
        };
        let length = |l: &Loop| l.blocks.iter().map(Range::len).sum::<usize>();
        let counted = loops.iter().map(|l| (matrix(l), l));
        match counted.max_by_key(|(count, l)| (*count, Reverse(length(l)))) {
            Some((count, hot)) if count > 0 => Some(hot.clone()),
            _ => {
                let innermost = loops.iter().filter(|l| inside(l).is_empty());
                innermost.max_by_key(|l| length(l)).cloned()
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
        assert_eq!(hot.body(function).len(), 2);
        assert_eq!(hot.body(function)[0].line, 5);
    }

    #[test]
    fn the_ends_of_a_pipeline_are_not_hot() {
        // A loop over tiles, with the last two iterations of each behind the loop inside.
        let product = "\tv_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], v[0:3]\n";
        let text = format!(
            "f:\n.LBB0_1:\n\ts_nop 0\n.LBB0_2:\n{product}\ts_cbranch_scc0 .LBB0_2\n\
             {product}{product}\ts_cbranch_scc0 .LBB0_1\n\ts_endpgm\n"
        );
        let program = parse(&text).unwrap();
        let hot = program.functions[0].hot_loop().unwrap();
        assert_eq!(hot.body(&program.functions[0]).len(), 2);
    }

    #[test]
    fn without_matrix_instructions_the_longest_innermost_loop_is_hot() {
        let program = parse(&TEXT.replace("v_mfma_f32_16x16x32_bf16", "v_fma_f32")).unwrap();
        let function = &program.functions[0];
        let hot = function.hot_loop().unwrap();
        assert_eq!(hot.body(function).len(), 4);
        assert_eq!(
            parse("f:\n s_endpgm\n").unwrap().functions[0].hot_loop(),
            None
        );
    }

    /// The arm of a condition stands behind the loop's end, and goes back into its middle.
    #[test]
    fn a_branch_back_into_a_loop_is_no_loop() {
        let text = "\
f:
.LBB0_1:
\ts_cbranch_execnz .LBB0_4
.LBB0_2:
\ts_barrier
\ts_cbranch_scc0 .LBB0_1
\ts_endpgm
.LBB0_4:
\tv_nop
\ts_branch .LBB0_2
";
        let program = parse(text).unwrap();
        let function = &program.functions[0];
        let loops = function.loops();
        assert_eq!(loops.len(), 1);
        let body = loops[0].body(function);
        let names: Vec<&str> = body.iter().map(|i| i.op.name()).collect();
        assert_eq!(
            names,
            [
                "s_cbranch_execnz",
                "v_nop",
                "s_branch",
                "s_barrier",
                "s_cbranch_scc0"
            ]
        );
    }
}
