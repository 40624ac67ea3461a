//! The source is the device IR: for every example and every target the operations on memory, the
//! matrix instructions and what synchronises stand in the source in the order of the IR, in the
//! same loops, under a condition or not.
//!
//! `scan` reads the text without knowing how it was printed, `walk` reads the IR without knowing
//! how it will be. Both give a [`Step`] for each operation and each loop that has one.
//!
//! Not compared: moves of a single element, which are subscripts in C, and which condition it is.

mod corpus;
#[path = "printed/scan.rs"]
mod scan;
#[path = "printed/walk.rs"]
mod walk;

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::codegen;
use tilewright::ir::{FileId, Func, Target, text};

/// What stands at a place of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    Loop(Way),
    End,
    /// An operation, and whether it is under a condition.
    Op(String, bool),
}

/// How a loop goes through its iterations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Serial,
    WrittenOut,
    /// Written out, and backwards in every other row.
    Turning,
}

/// Ends a loop; one without operations leaves no trace.
pub fn end(steps: &mut Vec<Step>) {
    match steps.last() {
        Some(Step::Loop(_)) => drop(steps.pop()),
        _ => steps.push(Step::End),
    }
}

fn main() {
    let args = Arguments::from_args();
    let mut trials: Vec<Trial> = corpus::trials(&Target::ALL, same).collect();
    for target in Target::ALL {
        let name = format!("{target} faults are found");
        trials.push(Trial::test(name, move || {
            let (func, source) = corpus::generated("gemm.py", &[], target)?;
            faults_are_found(&func, target, &source.text)
        }));
    }
    trials.push(Trial::test("bulk loads", bulk_loads));
    libtest_mimic::run(&args, trials).exit();
}

fn same(name: &str, target: Target) -> Result<(), Failed> {
    let (func, source) = corpus::generated(name, &[], target)?;
    compare(&func, target, &source.text)
}

/// A kernel with a warp group of its own for bulk loads, written by hand.
fn bulk_loads() -> Result<(), Failed> {
    let func = text::parse(include_str!("bulk/gemm.tw"), FileId(0)).expect("it parses");
    let source = codegen::generate(&func, Target::Sm90a, codegen::Options::default());
    let source = source.map_err(|error| error.message)?;
    compare(&func, Target::Sm90a, &source.text)?;
    faults_are_found(&func, Target::Sm90a, &source.text)
}

fn compare(func: &Func, target: Target, text: &str) -> Result<(), Failed> {
    let (ir, source) = (walk::steps(func, target), scan::steps(text));
    let same = ir.iter().zip(&source).take_while(|(a, b)| a == b).count();
    if same == ir.len() && same == source.len() {
        return Ok(());
    }
    let around = |steps: &[Step]| {
        let shown = &steps[same.saturating_sub(4)..steps.len().min(same + 4)];
        let lines = shown.iter().map(|s| format!("  {s:?}\n"));
        lines.collect::<String>()
    };
    let message = format!(
        "step {same} differs\nthe IR has\n{}the source has\n{}",
        around(&ir),
        around(&source)
    );
    Err(message.into())
}

/// A line of the source that goes missing, or that changes places with the next operation, is
/// noticed.
fn faults_are_found(func: &Func, target: Target, text: &str) -> Result<(), Failed> {
    let lines: Vec<&str> = text.lines().collect();
    let first = text[..scan::kernels_start(text)].lines().count();
    let does = |at: usize| scan::steps_of_line(lines[at]);
    let (mut dropped, mut swapped) = (0, 0);
    for at in (first..lines.len()).filter(|at| !does(*at).is_empty()) {
        let mut without = lines.clone();
        without.remove(at);
        dropped += 1;
        if compare(func, target, &without.join("\n")).is_ok() {
            return Err(format!("nobody misses `{}`", lines[at].trim()).into());
        }
        let next = (at + 1..lines.len()).find(|next| !does(*next).is_empty());
        let Some(next) = next.filter(|next| does(*next) != does(at)) else {
            continue;
        };
        let mut other = lines.clone();
        other.swap(at, next);
        swapped += 1;
        if compare(func, target, &other.join("\n")).is_ok() {
            let message = format!("`{}` may come later", lines[at].trim());
            return Err(message.into());
        }
    }
    match dropped > 8 && swapped > 4 {
        true => Ok(()),
        false => Err(format!("{dropped} operations, {swapped} pairs").into()),
    }
}
