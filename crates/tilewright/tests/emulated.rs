//! Small kernels as machine code of AMD's targets, in the emulator.
//!
//! Each file of `emulated/` is a kernel on whole numbers that the compiled code of was once read
//! wrongly, or that it was wrong for, or whose instructions no example has. So is each of `language/`
//! whose first line is `# emulated`. In every mode of landing the emulator finds nothing, and the
//! result is the reference evaluator's. A line `# without 2: s_barrier -> race` says that this rule
//! is broken where the second such instruction is left out. Lines `# prints: …` are all that it prints;
//! of several blocks those of a later one stand behind. `# prints 3 lines, loses 1` counts them. `# with n=0`
//! says what a symbol is.
//! `# compiled to: …` names instructions that the code has, `# not to: …` parts of names that none of it
//! has. No GPU is needed; clang is.

#[expect(dead_code, reason = "the list of examples is for other tests")]
mod corpus;
#[path = "kernels/every_order.rs"]
mod every_order;

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::codegen::Source;
use tilewright::emulate::{Emulator, LANDINGS, Options, Ran};
use tilewright::frontend;
use tilewright::ir::{Func, SourceMap, Target};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{AmdClang, HipOptions};
use tilewright::sim::{self, Args, Fill, InputSpec, Number, RunOptions};

/// Orders of waves in each mode.
const SEEDS: u64 = 3;

/// Steps enough for each of these kernels, many times over.
const STEPS: u64 = 4_000_000;

fn main() {
    let args = Arguments::from_args();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files: Vec<PathBuf> = ["emulated", "language"]
        .into_iter()
        .flat_map(|folder| fs::read_dir(tests.join(folder)).expect("the folder of kernels"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.parent().is_some_and(|p| p.ends_with("emulated")) || marked(path))
        .collect();
    files.sort();
    let mut trials = Vec::new();
    for file in files {
        for target in Target::ALL.into_iter().filter(|t| Emulator::runs(*t)) {
            let file = file.clone();
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let title = format!("{target} {name}");
            trials.push(Trial::test(title, move || kernel(&file, target)));
        }
    }
    trials.extend(every_order::trials());
    libtest_mimic::run(&args, trials).exit();
}

/// A kernel as it is compiled, and what it computes.
struct Compiled {
    func: Func,
    source: Source,
    target: Target,
    inputs: Args,
    right: Args,
    prints: Vec<String>,
    /// Lines that are printed, and lines that are lost.
    counts: Option<(usize, u32)>,
}

/// Whether a kernel of another test is run here too.
fn marked(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.starts_with("# emulated\n"))
}

fn kernel(path: &Path, target: Target) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let (func, source) = corpus::generated(&path.to_string_lossy(), &[], target)?;
    let clang = AmdClang::find(&Env::process())
        .map_err(|missing| format!("this test needs clang: run scripts/setup-clang\n{missing}"))?;
    let options = HipOptions {
        line_info: true,
        ..HipOptions::default()
    };
    let assembly = clang
        .assembly(&source.text, target.name(), &options)
        .map_err(|e| e.to_string())?;
    has_instructions(&text, &assembly)?;
    let (inputs, right) = evaluated(&path.to_string_lossy(), &text)?;
    let prints = text.lines().filter_map(|l| l.strip_prefix("# prints: "));
    let compiled = Compiled {
        func,
        source,
        target,
        inputs,
        right,
        prints: prints.map(str::to_string).collect(),
        counts: text.lines().find_map(counts),
    };
    compiled.is_right(&assembly)?;
    for line in text.lines().filter_map(|l| l.strip_prefix("# without ")) {
        let wrong = || format!("`# without {line}` is not understood");
        let (number, rest) = line.split_once(": ").ok_or_else(wrong)?;
        let (instruction, kind) = rest.split_once(" -> ").ok_or_else(wrong)?;
        let number: usize = number.parse().map_err(|_| wrong())?;
        let faulty = without(&assembly, instruction, number)
            .ok_or_else(|| format!("there is no `{instruction}` number {number}\n{assembly}"))?;
        compiled.is_wrong(&faulty, kind).map_err(|why| {
            let why = why.message().unwrap_or_default();
            Failed::from(format!("without {line}: {why}"))
        })?;
    }
    Ok(())
}

/// What `# compiled to: …` and `# not to: …` say.
fn has_instructions(text: &str, assembly: &str) -> Result<(), Failed> {
    let words = |prefix: &'static str| {
        let lines = text.lines().filter_map(move |l| l.strip_prefix(prefix));
        lines.flat_map(str::split_whitespace)
    };
    let code = || assembly.lines().filter_map(|l| l.split_whitespace().next());
    if let Some(missing) = words("# compiled to: ").find(|word| !code().any(|op| op == *word)) {
        return Err(format!("there is no `{missing}`\n{assembly}").into());
    }
    if let Some(op) = code().find(|op| words("# not to: ").any(|word| op.contains(word))) {
        return Err(format!("there is `{op}`\n{assembly}").into());
    }
    Ok(())
}

/// What `# prints 3 lines, loses 1` says.
fn counts(line: &str) -> Option<(usize, u32)> {
    let (lines, lost) = line
        .strip_prefix("# prints ")?
        .split_once(" lines, loses ")?;
    Some((lines.parse().ok()?, lost.parse().ok()?))
}

/// The tensors before and after a kernel, as it was written.
fn evaluated(file: &str, text: &str) -> Result<(Args, Args), Failed> {
    let mut sources = SourceMap::new();
    let id = sources.add(file, text.to_owned());
    let staged = frontend::stage(&sources, id, None, &[]).map_err(|d| format!("{d:?}"))?;
    let func = staged.func;
    let mut spec = InputSpec::default();
    for (buffer, _) in func.tensors() {
        let name = func.buffers[buffer].name.clone();
        spec.fills.insert(name, Fill::Iota(11));
    }
    for line in text.lines().filter_map(|l| l.strip_prefix("# with ")) {
        let wrong = || format!("`# with {line}` is not understood");
        let (name, value) = line.split_once('=').ok_or_else(wrong)?;
        let value: i128 = value.parse().map_err(|_| wrong())?;
        spec.values.insert(name.to_string(), Number::Int(value));
    }
    let inputs = sim::make_inputs(&func, &spec).map_err(|e| e.to_string())?;
    let mut right = inputs.try_clone(&func).map_err(|e| e.to_string())?;
    sim::run(&func, &mut right, &RunOptions::default()).map_err(|e| e.to_string())?;
    Ok((inputs, right))
}

/// The code without the nth of these instructions.
fn without(assembly: &str, instruction: &str, nth: usize) -> Option<String> {
    let mut lines: Vec<&str> = assembly.lines().collect();
    let places = lines
        .iter()
        .enumerate()
        .filter(|(_, l)| l.trim() == instruction);
    let (place, _) = places.take(nth).nth(nth - 1)?;
    lines[place] = "\ts_nop 0";
    Some(lines.join("\n"))
}

impl Compiled {
    /// Runs code in a mode; gives what is found, and the tensors.
    fn run(&self, code: &Emulator, landing: usize, seed: u64) -> Result<(Ran, Args), Failed> {
        let options = Options {
            landing: LANDINGS[landing].1,
            seed,
            threads: 2,
            steps: STEPS,
            ..Options::default()
        };
        let mut args = self
            .inputs
            .try_clone(&self.func)
            .map_err(|e| e.to_string())?;
        let ran = code.run(&mut args, &options).map_err(|e| e.to_string())?;
        Ok((ran, args))
    }

    fn code(&self, assembly: &str) -> Result<Emulator, Failed> {
        let code = Emulator::of_assembly(&self.func, self.target, self.source.clone(), assembly);
        Ok(code.map_err(|e| e.to_string())?)
    }

    fn is_right(&self, assembly: &str) -> Result<(), Failed> {
        let code = self.code(assembly)?;
        for (landing, (name, _)) in LANDINGS.iter().enumerate() {
            for seed in 0..SEEDS {
                let (ran, args) = self.run(&code, landing, seed)?;
                if let Some(found) = ran.findings.first() {
                    return Err(format!("landing {name}, seed {seed}: {found:?}").into());
                }
                let printed = ran.printed.told();
                let counts = (
                    printed.len() - usize::from(ran.printed.lost > 0),
                    ran.printed.lost,
                );
                let right = match self.counts {
                    Some(expected) => counts == expected,
                    None => printed == self.prints,
                };
                if !right {
                    return Err(format!("landing {name}, seed {seed}: {printed:#?}").into());
                }
                for (buffer, _) in self.func.tensors() {
                    let tensor = &self.func.buffers[buffer].name;
                    let values = |args: &Args| args.tensor(tensor).map(|t| t.to_f64());
                    if values(&args) != values(&self.right) {
                        let text = format!("landing {name}, seed {seed}: `{tensor}` differs");
                        return Err(text.into());
                    }
                }
            }
        }
        Ok(())
    }

    /// The rule is broken in every mode.
    fn is_wrong(&self, assembly: &str, kind: &str) -> Result<(), Failed> {
        let code = self.code(assembly)?;
        for (landing, (name, _)) in LANDINGS.iter().enumerate() {
            let (ran, _) = self.run(&code, landing, 0)?;
            if !ran.kinds.iter().any(|found| found.name() == kind) {
                return Err(format!("landing {name}: {:?}", ran.findings).into());
            }
        }
        Ok(())
    }
}
