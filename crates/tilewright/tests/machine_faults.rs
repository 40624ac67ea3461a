//! Faults planted in machine code, one at a time: each is found by the audit or by the emulator.
//!
//! Waits loosened and left out, barriers left out, wait states left out, places in LDS, offsets of
//! reads, steps of copies, operands of matrix instructions, steps of loops. A fault that neither
//! finds must be proved to be none: a wait by [`needless`], on all ways through the code; wait states
//! by the audit's table, which knows of no distance there that is too short. The compiler and the
//! schedule wait in places where another wait is enough; the table says how many.
//!
//! `TILEWRIGHT_TEST_GFX9=all` plants them all; else it is a sample.

#[expect(dead_code, reason = "the list of examples is for other tests")]
mod corpus;
#[path = "machine_faults/needless.rs"]
mod needless;

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::codegen::Source;
use tilewright::emulate::{Emulator, LANDINGS, Options};
use tilewright::gfx9::asm;
use tilewright::gfx9::isa::Opcode;
use tilewright::ir::{FileId, Func, Target, text};
use tilewright::jit::audit::{Budget, audit};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{AmdClang, HipOptions};
use tilewright::schedule::hazard;
use tilewright::sim::{self, Args, InputSpec};

/// A kernel that gets faults.
struct Kernel {
    file: &'static str,
    settings: &'static [(&'static str, &'static str)],
    target: Target,
    /// Every how many faults one is planted where not all are.
    sample: usize,
}

const GEMM: &[(&str, &str)] = &[
    ("trans_B", "True"),
    ("dtype", "bfloat16"),
    ("M", "128"),
    ("N", "128"),
    ("K", "256"),
];
const ATTENTION: &[(&str, &str)] = &[
    ("batch", "1"),
    ("heads", "1"),
    ("seq_len", "160"),
    ("dim", "64"),
];
const SOFTMAX: &[(&str, &str)] = &[("M", "8"), ("N", "300")];

/// Halves of a block's waves, one barrier apart.
const HALVES: &[(&str, &str)] = &[
    ("trans_B", "True"),
    ("dtype", "bfloat16"),
    ("M", "256"),
    ("N", "128"),
    ("K", "256"),
    ("block_M", "256"),
    ("block_K", "64"),
    ("num_stages", "2"),
    ("threads", "512"),
];

const KERNELS: [Kernel; 6] = [
    Kernel {
        file: "gemm.py",
        settings: HALVES,
        target: Target::Gfx942,
        sample: 7,
    },
    Kernel {
        file: "gemm.py",
        settings: HALVES,
        target: Target::Gfx950,
        sample: 3,
    },
    Kernel {
        file: "gemm.py",
        settings: GEMM,
        target: Target::Gfx950,
        sample: 7,
    },
    Kernel {
        file: "gemm.py",
        settings: GEMM,
        target: Target::Gfx942,
        sample: 11,
    },
    Kernel {
        file: "attention_fwd.py",
        settings: ATTENTION,
        target: Target::Gfx950,
        sample: 41,
    },
    Kernel {
        file: "rms_norm.py",
        settings: SOFTMAX,
        target: Target::Gfx950,
        sample: 11,
    },
];

/// Steps enough for each of these kernels, several times over.
const STEPS: u64 = 400_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    LooserWait,
    NoWait,
    NoBarrier,
    NoWaitStates,
    /// Another place in LDS is read.
    ReadOffset,
    WriteOffset,
    /// A copy goes to another place in LDS.
    CopyPlace,
    /// A matrix instruction multiplies something else.
    Operand,
    /// A loop takes another step, or another slot.
    Step,
}

impl Fault {
    /// Whether it is proved that the fault, which the audit does not find, changes nothing.
    fn is_none(self, case: &Case<'_>, text: &str, faulty: &str, line: usize) -> bool {
        match self {
            Fault::NoBarrier => is_of_some_waves(text, line) && case.needs_no_shift(),
            Fault::LooserWait | Fault::NoWait => needless::is_needless(text, faulty, line),
            Fault::NoWaitStates => true,
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    audit: usize,
    both: usize,
    emulator: usize,
    none: usize,
    /// In code that these sizes have no use for.
    not_run: usize,
}

fn main() {
    let args = Arguments::from_args();
    let trials = KERNELS.iter().map(|kernel| {
        let title = format!("{} {}", kernel.target, kernel.file);
        Trial::test(title, || planted(kernel))
    });
    libtest_mimic::run(&args, trials.collect()).exit();
}

fn planted(kernel: &Kernel) -> Result<(), Failed> {
    let target = kernel.target;
    let (func, source) = corpus::generated(kernel.file, kernel.settings, target)?;
    let clang = AmdClang::find(&Env::process())
        .map_err(|missing| format!("this test needs clang: run scripts/setup-clang\n{missing}"))?;
    let text = clang
        .assembly(&source.text, target.name(), &HipOptions::default())
        .map_err(|e| e.to_string())?;
    let inputs = sim::make_inputs(&func, &InputSpec::default()).map_err(|e| e.to_string())?;
    let (right, ran) = run(&func, &source, target, &text, &inputs)?;
    let case = Case {
        func: &func,
        source: &source,
        target,
        inputs,
        right,
    };
    let all = std::env::var_os("TILEWRIGHT_TEST_GFX9").is_some();
    let mut table: BTreeMap<Fault, Count> = BTreeMap::new();
    let mut missed = String::new();
    for (number, (fault, line, faulty)) in faults(&text).into_iter().enumerate() {
        if !all && number % kernel.sample != 0 {
            continue;
        }
        let count = table.entry(fault).or_default();
        let by_audit = case.audit_finds(&faulty)?;
        if !ran.contains(&(line as u32)) {
            match by_audit {
                true => count.audit += 1,
                false => count.not_run += 1,
            }
            continue;
        }
        match (by_audit, case.emulator_finds(&faulty)?) {
            (true, true) => count.both += 1,
            (true, false) => count.audit += 1,
            (false, true) => count.emulator += 1,
            (false, false) => {
                count.none += 1;
                if !fault.is_none(&case, &text, &faulty, line) {
                    let code = text.lines().nth(line - 1).unwrap_or("").trim();
                    missed += &format!("{fault:?} in line {line}: {code}\n");
                }
            }
        }
    }
    let columns = "found by the audit alone, by both, by the emulator alone; proved none; not run";
    println!("{target} {}: {columns}", kernel.file);
    for (fault, count) in &table {
        let name = format!("{fault:?}");
        let Count {
            audit,
            both,
            emulator,
            none,
            not_run,
        } = count;
        println!("  {name:14} {audit:5} {both:5} {emulator:5} {none:5} {not_run:5}");
    }
    match missed.is_empty() {
        true => Ok(()),
        false => Err(format!("not found:\n{missed}").into()),
    }
}

/// Whether only waves that take a branch come to the barrier: it shifts them against the others.
fn is_of_some_waves(text: &str, line: usize) -> bool {
    let before = text.lines().take(line - 1).collect::<Vec<_>>();
    let code = |l: &&&str| l.starts_with('\t') && !l.trim_start().starts_with([';', '.']);
    let branch = before.iter().rev().find(code);
    branch.is_some_and(|l| l.contains("s_cbranch_execz"))
}

/// A kernel with what it computes when nothing is wrong.
struct Case<'a> {
    func: &'a Func,
    source: &'a Source,
    target: Target,
    inputs: Args,
    right: Args,
}

impl Case<'_> {
    /// Whether the kernel is proved free of hazards, too, where no waves are shifted against others.
    /// A barrier that is left over at its end is passed: waves that have ended count as arrived.
    fn needs_no_shift(&self) -> bool {
        let whole = text::print(self.func);
        let shifts = |l: &&str| l.trim_start().starts_with("barrier cond(");
        let (shifts, left): (Vec<&str>, Vec<&str>) = whole.lines().partition(shifts);
        let func = text::parse(&left.join("\n"), FileId(0)).expect("valid text");
        !shifts.is_empty() && hazard::check(&func, self.target).is_clean()
    }

    fn audit_finds(&self, text: &str) -> Result<bool, Failed> {
        let names: Vec<String> = self.source.kernels.iter().map(|k| k.name.clone()).collect();
        let Ok(audits) = audit(self.func, self.target, &names, text, Budget::default()) else {
            return Ok(true);
        };
        let mut findings = audits.iter().flat_map(|a| &a.report.findings);
        Ok(findings.any(|f| !f.kind.is_cost()))
    }

    /// Whether the tensors are the same, bit by bit: another maximum of a row changes a softmax in its
    /// last places only.
    fn is_right(&self, args: &Args) -> bool {
        let mut tensors = self.func.tensors();
        tensors.all(|(buffer, _)| {
            let name = &self.func.buffers[buffer].name;
            let bytes = |args: &Args| args.tensor(name).map(|t| t.bytes().to_vec());
            bytes(args) == bytes(&self.right)
        })
    }

    fn emulator_finds(&self, text: &str) -> Result<bool, Failed> {
        let emulator = Emulator::of_assembly(self.func, self.target, self.source.clone(), text)
            .map_err(|e| e.to_string())?;
        for (_, landing) in LANDINGS {
            let mut args = self
                .inputs
                .try_clone(self.func)
                .map_err(|e| e.to_string())?;
            let options = Options {
                landing,
                seed: 7,
                threads: 1,
                steps: STEPS,
                ..Options::default()
            };
            let found = emulator
                .run(&mut args, &options)
                .map_err(|e| e.to_string())?
                .findings;
            if !found.is_empty() || !self.is_right(&args) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What the code computes as it stands.
fn run(
    func: &Func,
    source: &Source,
    target: Target,
    text: &str,
    inputs: &Args,
) -> Result<(Args, BTreeSet<u32>), Failed> {
    let emulator =
        Emulator::of_assembly(func, target, source.clone(), text).map_err(|e| e.to_string())?;
    let mut args = inputs.try_clone(func).map_err(|e| e.to_string())?;
    let options = Options {
        threads: 1,
        steps: STEPS,
        ..Options::default()
    };
    let ran = emulator
        .run(&mut args, &options)
        .map_err(|e| e.to_string())?;
    match ran.findings.first() {
        Some(finding) => Err(format!("as it stands: {}", finding.message).into()),
        None => Ok((args, ran.lines)),
    }
}

/// The code with one fault each, and the line that it is in.
fn faults(text: &str) -> Vec<(Fault, usize, String)> {
    let program = asm::parse(text).expect("assembly");
    let lines: Vec<&str> = text.lines().collect();
    let mut list = Vec::new();
    for function in &program.functions {
        for instruction in &function.instructions {
            let at = instruction.line as usize - 1;
            let code = instruction.text.as_str();
            let mut plant = |fault: Fault, instead: Option<String>| {
                if let Some(instead) = instead {
                    let mut changed = lines.clone();
                    changed[at] = &instead;
                    list.push((fault, at + 1, changed.join("\n")));
                }
            };
            let offset = |by: i32| {
                let old = format!("offset:{}", instruction.modifiers.offset);
                match code.contains(&old) {
                    true => {
                        let new = format!("offset:{}", instruction.modifiers.offset + by);
                        Some(code.replacen(&old, &new, 1))
                    }
                    // Of two places the second, in elements.
                    false if code.contains("offset1:") => {
                        let (before, number) = code.rsplit_once("offset1:").unwrap_or_default();
                        let number: i32 = number.trim().parse().ok()?;
                        Some(format!("{before}offset1:{}", (number + 2) % 256))
                    }
                    false if code.contains("offset") => None,
                    false => Some(format!("{code} offset:{by}")),
                }
            };
            match instruction.op {
                Opcode::s_waitcnt => {
                    for counter in ["vmcnt", "lgkmcnt"] {
                        plant(Fault::LooserWait, loosened(code, counter));
                        plant(Fault::NoWait, without(code, counter));
                    }
                }
                Opcode::s_barrier => plant(Fault::NoBarrier, Some("s_sleep 0".to_owned())),
                Opcode::s_nop => plant(Fault::NoWaitStates, Some(String::new())),
                _ if instruction.is_lds_read() => plant(Fault::ReadOffset, offset(16)),
                _ if instruction.is_lds_write() => plant(Fault::WriteOffset, offset(16)),
                _ if instruction.is_mfma() => plant(Fault::Operand, swapped(code)),
                Opcode::s_add_i32 | Opcode::s_mov_b32 | Opcode::s_addk_i32 | Opcode::s_xor_b32 => {
                    let place = code.contains(" m0,");
                    let fault = if place { Fault::CopyPlace } else { Fault::Step };
                    // Only what is computed from what was there is a step.
                    if place || instruction.op != Opcode::s_mov_b32 {
                        plant(fault, stepped(code, if place { 64 } else { 1 }));
                    }
                }
                _ => {}
            }
        }
    }
    list
}

/// `vmcnt(3)` for `vmcnt(2)`.
fn loosened(code: &str, counter: &str) -> Option<String> {
    let (before, rest) = code.split_once(&format!("{counter}("))?;
    let (count, after) = rest.split_once(')')?;
    let count: u32 = count.parse().ok()?;
    Some(format!("{before}{counter}({}){after}", count + 1))
}

fn without(code: &str, counter: &str) -> Option<String> {
    let (before, rest) = code.split_once(&format!("{counter}("))?;
    let (_, after) = rest.split_once(')')?;
    let left = format!("{before}{after}");
    Some(match left.contains('(') {
        true => left,
        false => String::new(),
    })
}

/// A matrix instruction whose operands are both the second one.
fn swapped(code: &str) -> Option<String> {
    let (name, rest) = code.split_once(' ')?;
    let mut operands: Vec<&str> = rest.split(", ").collect();
    if operands.len() < 4 || operands[1] == operands[2] {
        return None;
    }
    operands[1] = operands[2];
    Some(format!("{name} {}", operands.join(", ")))
}

/// The last number of an instruction, made larger: where it says which version of a tile, only that bit of it
/// is looked at.
fn stepped(code: &str, by: i64) -> Option<String> {
    let (before, last) = code.rsplit_once(", ")?;
    let number = match last.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => last.parse().ok()?,
    };
    let bit = number & number.wrapping_neg();
    let by = if bit >= 256 { bit } else { by };
    Some(format!("{before}, {}", (number + by) & 0xffff_ffff))
}
