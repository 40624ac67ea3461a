//! Compiled AMD kernels run on this machine, by the emulator of [`tilewright_gfx9`].
//!
//! What runs is the assembly that the GPU's compiler makes of a kernel, instruction by instruction;
//! the emulator finds races, registers that are used too early, and accesses out of bounds. What it
//! finds leads back to the line of the kernel.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_codegen::{self as codegen, KernelArg, KernelSource, LineOrigin};
use tilewright_gfx9::asm;
use tilewright_gfx9::cycles::Trace;
use tilewright_gfx9::emu::{self, Arch, Argument, Finding, Landing, Launch, Refused};
use tilewright_ir::prints::Printed;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Code, Diagnostic, Diagnostics, Func, Kernel, SourceMap, Span, StmtKind, Target,
};
use tilewright_runtime::env::Env;
use tilewright_runtime::toolchain::{AmdClang, CompileError, HipOptions};
use tilewright_sim::{Args, Resolved, resolve, room};

use crate::call;
use crate::jit::Error;
use crate::jit::audit::{self, Budget, KernelAudit};

/// A function compiled for an AMD machine, ready to be emulated.
#[derive(Debug)]
pub struct Emulator {
    func: Func,
    target: Target,
    arch: Arch,
    program: asm::Program,
    kernels: Vec<KernelSource>,
    lines: Vec<LineOrigin>,
    /// Lines of the source that have atomic operations.
    atomic_lines: FxHashSet<u32>,
}

/// What the waves of one block did.
#[derive(Debug)]
pub struct Traced<'a> {
    pub function: &'a asm::Function,
    pub trace: Trace,
}

/// How it is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// When memory operations are done.
    pub landing: Landing,
    /// The order of waves, and of what is done at random.
    pub seed: u64,
    /// Worker threads; 0 takes all cores.
    pub threads: usize,
    /// The most instructions that the waves of a block may run.
    pub steps: u64,
    /// Bytes of memory that a run may take; where nothing is said, those that the system has left.
    pub room: Option<u64>,
}

/// What a run came to, beside what the tensors hold.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// What is wrong.
    pub findings: Vec<Diagnostic>,
    /// The rules that were broken.
    pub kinds: BTreeSet<emu::Kind>,
    /// The lines of the assembly that some wave ran.
    pub lines: BTreeSet<u32>,
    /// What the kernels printed.
    pub printed: Printed,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            landing: Landing::Random,
            seed: 0,
            threads: 0,
            steps: emu::STEPS,
            room: None,
        }
    }
}

/// The ways of doing memory operations, by name.
pub const LANDINGS: [(&str, Landing); 3] = [
    ("early", Landing::Early),
    ("late", Landing::Late),
    ("random", Landing::Random),
];

impl Emulator {
    /// Compiles device IR with the clang of this machine. Lines are those of the assembly as
    /// `compile --emit asm` shows it.
    pub fn new(func: &Func, target: Target, sources: &SourceMap) -> Result<Self, Error> {
        let options = codegen::Options {
            sources: Some(sources),
            line_directives: false,
        };
        let source = codegen::generate(func, target, options).map_err(|diag| Error::from(*diag))?;
        let options = HipOptions {
            name: format!("{}.hip", func.name),
            line_info: true,
            extra: source.flags.clone(),
            ..HipOptions::default()
        };
        let assembly = AmdClang::find(&Env::process())
            .map_err(CompileError::NotFound)
            .and_then(|clang| clang.assembly(&source.text, target.name(), &options))
            .map_err(Error::Toolchain)?;
        Self::of_program(func, target, source, asm::parse_with_tables(&assembly))
    }

    /// Takes assembly that was made of a function's source, or changed since.
    pub fn of_assembly(
        func: &Func,
        target: Target,
        source: codegen::Source,
        assembly: &str,
    ) -> Result<Self, Error> {
        Self::of_program(func, target, source, asm::parse(assembly))
    }

    fn of_program(
        func: &Func,
        target: Target,
        source: codegen::Source,
        program: Result<asm::Program, asm::ParseError>,
    ) -> Result<Self, Error> {
        let fail = |text: String| Error::plain("emulator", func.span, text);
        let arch = Arch::named(target.name()).ok_or_else(|| {
            fail(format!(
                "the emulator runs code of gfx942 and gfx950, not of {target}"
            ))
        })?;
        let lines = (1..).zip(source.text.lines());
        let atomic = lines.filter(|(_, text)| text.contains("tw::atomic"));
        Ok(Self {
            func: func.clone(),
            target,
            arch,
            program: program.map_err(|e| fail(e.to_string()))?,
            atomic_lines: atomic.map(|(line, _)| line).collect(),
            kernels: source.kernels,
            lines: source.lines,
        })
    }

    /// Whether code of a target can be emulated.
    pub fn runs(target: Target) -> bool {
        Arch::named(target.name()).is_some()
    }

    pub fn program(&self) -> &asm::Program {
        &self.program
    }

    /// Compares the code with the device IR it comes from.
    pub fn audit(&self, budget: Budget) -> Result<Vec<KernelAudit>, Error> {
        let names: Vec<String> = self.kernels.iter().map(|k| k.name.clone()).collect();
        audit::audit_program(&self.func, self.target, &names, &self.program, budget)
            .map_err(|text| Error::plain("audit", self.func.span, text))
    }

    /// Runs all kernels of the function on tensors, and says what is wrong with them.
    pub fn run(&self, args: &mut Args, options: &Options) -> Result<Ran, Error> {
        self.run_noting(args, options, None).map(|(ran, _)| ran)
    }

    /// Runs the function to see what the waves of one block of its last kernel do, of which only
    /// that block is run; the tensors are not to be used afterwards. Also what is wrong with it.
    pub fn trace(
        &self,
        args: &mut Args,
        options: &Options,
        block: u32,
    ) -> Result<(Traced<'_>, Vec<Diagnostic>), Error> {
        let (ran, traced) = self.run_noting(args, options, Some(block))?;
        let found = ran.findings;
        match traced {
            Some(traced) => Ok((traced, found)),
            None if !found.is_empty() => {
                let mut diags = Diagnostics::new();
                diags.extend(found);
                Err(Error::Diagnostics(diags))
            }
            None => {
                let text = format!("the last kernel has no block {block}");
                Err(Error::plain("emulator", self.func.span, text))
            }
        }
    }

    fn run_noting(
        &self,
        args: &mut Args,
        options: &Options,
        block: Option<u32>,
    ) -> Result<(Ran, Option<Traced<'_>>), Error> {
        let func = &self.func;
        let resolved = resolve(func, args)?;
        self.has_room_for_tensors(args, options)?;
        let mut buffers = self.buffers(args, &resolved);
        let mut ran = Ran::default();
        let mut traced = None;
        let last = func.kernels.len().saturating_sub(1);
        for (number, (kernel, source)) in func.kernels.iter().zip(&self.kernels).enumerate() {
            let function = self.program.function(&source.name).ok_or_else(|| {
                let text = format!("the assembly has no kernel `{}`", source.name);
                Error::plain("emulator", kernel.span, text)
            })?;
            let mut launch = self.launch(kernel, source, &resolved)?;
            if launch.grid.contains(&0) {
                continue;
            }
            launch.landing = options.landing;
            launch.seed = options.seed;
            launch.steps = options.steps;
            launch.room = options.room.or_else(room::available);
            if options.threads > 0 {
                launch.workers = options.threads;
            }
            if number == last {
                launch.traced = block;
                launch.only = block;
            }
            if launch
                .only
                .is_some_and(|only| u64::from(only) >= launch.blocks())
            {
                continue;
            }
            let tensors = self.written(source);
            launch.objects = self.objects(tensors.len());
            for (buffer, written) in buffers.iter_mut().zip(tensors) {
                buffer.writable = written;
            }
            launch.buffers = std::mem::take(&mut buffers);
            let outcome = emu::run(function, self.arch, launch)
                .map_err(|refused| refusal(kernel, source, &refused))?;
            buffers = outcome.buffers;
            traced = outcome.trace.map(|trace| Traced { function, trace });
            let code = function.instructions.iter().zip(&outcome.ran);
            let lines = code.filter(|(_, ran)| **ran).map(|(i, _)| i.line);
            ran.lines.extend(lines);
            ran.kinds.extend(outcome.findings.iter().map(|f| f.kind));
            let findings = outcome.findings.iter();
            let findings = findings.map(|f| self.diagnostic(function, kernel, f));
            ran.findings.extend(findings);
            if !ran.findings.is_empty() {
                break;
            }
        }
        if let Some(prints) = &func.attrs.prints
            && let Some(at) = call::tensors(func).position(|b| b == prints.buffer)
        {
            ran.printed = prints.read(&buffers[at].bytes);
        }
        for ((buffer, _), memory) in func.tensors().zip(&buffers) {
            if let Some(tensor) = args.tensor_mut(&func.buffers[buffer].name) {
                let count = tensor.bytes().len();
                tensor.set_bytes(&memory.bytes[..count]);
            }
        }
        Ok((ran, traced))
    }

    /// The emulator has tensors of its own, and notes which elements hold values.
    fn has_room_for_tensors(&self, args: &Args, options: &Options) -> Result<(), Error> {
        let tensors = self.func.tensors();
        let tensors = tensors.filter_map(|(b, _)| args.tensor(&self.func.buffers[b].name));
        let needed = tensors.fold(0, |sum: u64, tensor| {
            sum.saturating_add(2 * tensor.bytes().len() as u64)
        });
        match options.room.or_else(room::available) {
            Some(left) if needed > left => {
                let message = no_room("the tensors", needed, left);
                let diag = Diagnostic::error(OUT_OF_MEMORY, self.func.span, message);
                Err(diag.help("choose smaller sizes").into())
            }
            _ => Ok(()),
        }
    }

    /// The line of the kernel that an instruction comes from.
    pub fn place(&self, function: &asm::Function, at: usize) -> Option<Span> {
        self.span(function, at)
    }

    /// Where the program's objects are, behind so many buffers.
    fn objects(&self, first: usize) -> FxHashMap<String, usize> {
        self.program.objects.keys().cloned().zip(first..).collect()
    }

    /// The function's tensors and, behind them, its workspaces and the program's objects.
    fn buffers(&self, args: &Args, resolved: &Resolved) -> Vec<emu::Buffer> {
        let func = &self.func;
        let objects = self.program.objects.iter();
        let objects = objects.map(|(name, bytes)| emu::Buffer {
            name: name.clone(),
            bytes: bytes.clone(),
            element: 4,
            writable: true,
            holds: None,
        });
        let buffer = |buffer| {
            let data = &func.buffers[buffer];
            let tensor = args.tensor(&data.name);
            let mut bytes = match tensor {
                Some(tensor) => tensor.bytes().to_vec(),
                None => vec![0; call::bytes(func, buffer, resolved)],
            };
            // Halves of bytes are stored by operations on whole words, which keep the rest as it is.
            let in_words = data.dtype.bits() < 8;
            if in_words {
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            let element = (data.dtype.bits() / 8).clamp(1, 4);
            let whole = tensor.is_some_and(|tensor| tensor.is_whole());
            let holds = |piece: usize| {
                let position = piece * element as usize * 8 / data.dtype.bits() as usize;
                tensor.is_some_and(|tensor| tensor.is_written(position))
            };
            let pieces = 0..bytes.len() / element as usize;
            // Lines that kernels print are found among zeros.
            let of_lines = func.attrs.prints.as_ref();
            let of_lines = of_lines.is_some_and(|prints| prints.buffer == buffer);
            let whole = whole || of_lines || in_words;
            emu::Buffer {
                name: data.name.clone(),
                element,
                writable: true,
                holds: (!whole).then(|| pieces.map(holds).collect()),
                bytes,
            }
        };
        call::tensors(func).map(buffer).chain(objects).collect()
    }

    /// Which of them a kernel writes.
    fn written(&self, source: &KernelSource) -> Vec<bool> {
        let written = |buffer| {
            let of = |arg: &KernelArg| {
                *arg == KernelArg::Buffer {
                    buffer,
                    written: true,
                }
            };
            source.args.iter().any(of)
        };
        call::tensors(&self.func).map(written).collect()
    }

    fn launch(
        &self,
        kernel: &Kernel,
        source: &KernelSource,
        resolved: &Resolved,
    ) -> Result<Launch, Error> {
        let func = &self.func;
        let grid = call::grid(func, kernel, resolved)?;
        let mut launch = Launch::new(grid, kernel.threads);
        launch.dynamic_lds = source.shared_bytes;
        launch.atomic_lines = self.atomic_lines.clone();
        walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Alloc(buffer) = &stmt.kind
                && let Some(place) = func.buffers[*buffer].place
            {
                let end = place.end().next_multiple_of(4);
                let in_words = func.buffers[*buffer].dtype.bits() < 8;
                let start = if in_words { place.offset } else { place.end() };
                launch.lds_rests.push(start..end);
            }
        });
        for arg in &source.args {
            let argument = match arg {
                KernelArg::Buffer { buffer, .. } => {
                    let index = call::tensors(func).position(|b| b == *buffer);
                    index.map(|index| Argument::Buffer { index, offset: 0 })
                }
                KernelArg::Scalar(var) => {
                    let scalar = call::scalar(func, *var, resolved);
                    scalar.and_then(|arg| arg.bytes()).map(Argument::Bytes)
                }
                KernelArg::Map(_) => None,
            };
            launch.arguments.push(argument.ok_or_else(|| {
                let text = "the emulator cannot make an argument of the kernel";
                Error::plain("emulator", kernel.span, text)
            })?);
        }
        Ok(launch)
    }

    /// A finding at the line of the kernel that its instruction comes from.
    fn diagnostic(
        &self,
        function: &asm::Function,
        kernel: &Kernel,
        finding: &Finding,
    ) -> Diagnostic {
        let span = self.span(function, finding.at).unwrap_or(kernel.span);
        let text = format!("compiled `{}`: {}", function.name, finding.show(function));
        let mut diag = Diagnostic::error(Code("compiled-code"), span, text);
        if let Some(other) = finding.other.and_then(|at| self.span(function, at))
            && other != span
        {
            diag = diag.also(other, "the other instruction comes from here");
        }
        diag
    }

    fn span(&self, function: &asm::Function, at: usize) -> Option<Span> {
        // Code without a place of its own belongs to what stands before it.
        let before = function.instructions.get(..=at)?.iter().rev();
        before.take(32).find_map(|instruction| {
            let line = instruction.place?.line;
            let origin = self
                .lines
                .iter()
                .filter(|o| o.line <= line)
                .max_by_key(|o| o.line);
            origin.map(|o| o.span)
        })
    }
}

const OUT_OF_MEMORY: Code = Code("out-of-memory");

/// Why the emulator does not run a kernel.
fn refusal(kernel: &Kernel, source: &KernelSource, refused: &Refused) -> Error {
    let (needs, left) = match refused {
        Refused::Launch(text) => return Error::plain("emulator", kernel.span, text),
        Refused::NoRoom { needs, room } => (needs, *room),
    };
    let message = no_room(&format!("`{}`", source.name), needs.bytes(), left);
    let why = match needs.all_alive {
        true => ", for blocks may wait for each other",
        false => "",
    };
    let note = format!(
        "{} are for who touched which element of the tensors, {} for each of {} blocks at a time{why}",
        room::in_words(needs.buffers),
        room::in_words(needs.block),
        needs.alive,
    );
    let help = match needs.alive {
        _ if needs.buffers > left => "choose smaller sizes",
        1 => "choose smaller tiles",
        _ if needs.all_alive => "choose a smaller grid",
        _ => "run fewer blocks at a time (`run --jobs 1`), or choose smaller tiles",
    };
    let diag = Diagnostic::error(OUT_OF_MEMORY, kernel.span, message);
    diag.note(note).help(help).into()
}

fn no_room(what: &str, needed: u64, left: u64) -> String {
    format!(
        "there is no memory to emulate {what}: {} are needed, and {} are left",
        room::in_words(needed),
        room::in_words(left)
    )
}
