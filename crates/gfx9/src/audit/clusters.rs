//! Matrix instructions of the loop against the clusters of the schedule.
//!
//! From one barrier or change of priority to the next the code has as many matrix instructions as the
//! schedule. A loop may be laid out with another first block, so both are compared as rings. Where they
//! differ the kernel computes the same, and takes longer.

use crate::asm::{Instruction, Operand};
use crate::isa::Opcode;

use super::{Expectation, Finding, Kind, finding};

/// What a cluster begins with, or is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    Barrier,
    Priority(u8),
    /// So many matrix instructions.
    Products(u32),
}

pub(super) fn check(body: &[&Instruction], expected: &Expectation, findings: &mut Vec<Finding>) {
    if expected.reshaped || expected.unread_products {
        return;
    }
    let marked = body.iter().filter_map(|at| Some((mark(at)?, *at)));
    let found = ring(marked.collect());
    let wanted = ring(expected.clusters.iter().map(|mark| (*mark, ())).collect());
    if wanted.len() <= 1 {
        return;
    }
    // How far each turn is as it should be, and what comes behind that.
    let same = |turn: usize| {
        let turned = found[turn..].iter().chain(&found[..turn]);
        let alike = turned.zip(&wanted).take_while(|((a, _), (b, ()))| a == b);
        alike.count()
    };
    let best = (0..found.len()).max_by_key(|turn| (same(*turn), usize::MAX - turn));
    let best = best.map(|turn| (turn, same(turn)));
    if found.len() == wanted.len() && best.is_some_and(|(_, same)| same == found.len()) {
        return;
    }
    let at = best.and_then(|(turn, same)| found.get((turn + same) % found.len()));
    let Some(at) = at.map(|(_, at)| *at).or(body.first().copied()) else {
        return;
    };
    let reason = format!(
        "the loop's clusters are {}, those of the schedule {}",
        text(found.iter().map(|(mark, _)| *mark)),
        text(wanted.iter().map(|(mark, ())| *mark))
    );
    findings.push(finding(Kind::MovedProduct, at, reason));
}

fn mark(at: &Instruction) -> Option<Mark> {
    if at.is_mfma() {
        return Some(Mark::Products(1));
    }
    if at.is_barrier() {
        return Some(Mark::Barrier);
    }
    match (at.op, at.operands.first()) {
        (Opcode::s_setprio, Some(Operand::Integer(n))) => {
            Some(Mark::Priority(u8::try_from(*n).unwrap_or(u8::MAX)))
        }
        _ => None,
    }
}

/// From the first barrier or priority on, around to it again, with products that follow each other as one.
fn ring<T: Copy>(mut marks: Vec<(Mark, T)>) -> Vec<(Mark, T)> {
    let is_work = |mark: &Mark| matches!(mark, Mark::Products(_));
    let first = marks.iter().position(|(mark, _)| !is_work(mark));
    marks.rotate_left(first.unwrap_or(0));
    let mut joined: Vec<(Mark, T)> = Vec::new();
    for (mark, at) in marks {
        match (joined.last_mut(), mark) {
            (Some((Mark::Products(all), _)), Mark::Products(more)) => *all += more,
            _ => joined.push((mark, at)),
        }
    }
    joined
}

fn text(marks: impl Iterator<Item = Mark>) -> String {
    let texts = marks.map(|mark| match mark {
        Mark::Barrier => "barrier".to_string(),
        Mark::Priority(level) => format!("priority {level}"),
        Mark::Products(count) => format!("{count} products"),
    });
    texts.collect::<Vec<_>>().join(", ")
}
