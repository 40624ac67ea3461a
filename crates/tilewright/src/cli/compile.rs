//! `tilewright compile`: a kernel at one level of the compiler, or its layouts drawn.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tilewright::codegen;
use tilewright::decisions::PLACED;
use tilewright::ir::{Code, Diagnostic, Dialect, Func, Level, SourceMap, Span, Target, text};
use tilewright::lowering::Until;
use tilewright::passes;
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{CompileOptions, KernelInfo, Toolchain};

use super::amd::{self, figures as amd_figures};
use super::output::{self, Failure, Outcome};
use super::show::{PrintTo, Show, ShowArgs};
use super::{KernelArgs, input, layouts, lower, passes::parse_target, shared};

/// The pass that decides where elements are.

#[derive(Args, Debug)]
pub struct CompileArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// What to print. Without it that is tile IR; where one of the options for passes is given,
    /// all passes are run, and only what those ask for is printed.
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// The target that the kernel is lowered for.
    #[arg(long, default_value = Target::DEFAULT.name())]
    target: String,
    /// Write to this file instead of stdout. `layouts-svg` needs it, and takes it for a folder.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Put `#line` directives into generated source.
    #[arg(long)]
    line_directives: bool,
    /// Let the target's compiler use approximate division and functions.
    #[arg(long)]
    fast_math: bool,
    /// Print one JSON object that holds the text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    show: ShowArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Emit {
    /// Tile IR: what the user said.
    Tile,
    /// Loop IR: what one thread does.
    Loop,
    /// Device IR: the same with every barrier written down.
    Device,
    /// The order of every pipelined loop, as `--schedule` takes it, with the waits and barriers that
    /// follow from it as comments.
    Schedule,
    /// Drawings as text: the thread and register of every element of every fragment, the place
    /// of every element of every shared buffer.
    Layouts,
    /// The same drawings as SVG, one file a buffer, in the folder that `--output` names.
    LayoutsSvg,
    /// Pipelined loops as SVG, one file a kernel, in the folder that `--output` names: copies,
    /// reads, products, waits and barriers over the first iterations.
    ScheduleSvg,
    /// Source for the target's compiler.
    Source,
    /// What clang makes of it for an AMD target; the kernels' registers, LDS and scratch go to
    /// stderr.
    Asm,
    /// The code object for an AMD target, for `--output`; the same figures are printed.
    Hsaco,
    /// What that compiler makes of it, as portable assembly; the kernels' registers and spills
    /// go to stderr.
    Ptx,
    /// The compiled program, for `--output`; the kernels' registers and spills are printed.
    Cubin,
    /// What the options for passes show, and nothing else.
    #[value(skip)]
    Passes,
}

pub fn compile(args: &CompileArgs) -> Outcome {
    let start = Instant::now();
    let target = parse_target(&args.target)?;
    let emit = what_to_emit(args, target)?;
    args.show.check(&passes::pipeline(target))?;
    let loaded = input::load(&args.kernel, target, args.json)?;
    let sources = &loaded.sources;
    let to = match emit {
        Emit::Passes if !args.json => PrintTo::Stdout,
        _ => PrintTo::beside(args.json),
    };
    let mut show = Show::new(&args.show, &loaded.func, to, sources)?;
    show.timings.front_end = Some(loaded.took);
    let compile = Compile {
        args,
        emit,
        target,
        sources,
        show,
        start,
    };
    compile.run(&loaded.func)
}

/// What to print; that it cannot be is bad usage.
fn what_to_emit(args: &CompileArgs, target: Target) -> Result<Emit, Failure> {
    let shown = args.show.asked();
    let emit = match (args.emit, shown) {
        (Some(emit), _) => emit,
        (None, Some(_)) => Emit::Passes,
        (None, None) => Emit::Tile,
    };
    let bad = |why: String| Err(Failure::Usage(why));
    // A compiled program is what the compiler of the dialect makes.
    let dialect = target.machine().dialect;
    match (emit, shown, &args.output) {
        (Emit::LayoutsSvg | Emit::ScheduleSvg, _, None) => {
            let name = match emit {
                Emit::LayoutsSvg => "layouts-svg",
                _ => "schedule-svg",
            };
            bad(format!(
                "`--emit {name}` needs a folder to write to: `--output FOLDER`"
            ))
        }
        (Emit::Tile, Some(option), _) => bad(format!(
            "`{option}` shows passes, and `--emit tile` runs none; without `--emit` all are run"
        )),
        (Emit::Passes, _, Some(_)) => {
            bad("`--output` takes what `--emit` names, and there is no `--emit`".to_owned())
        }
        (Emit::Ptx | Emit::Cubin, ..) if dialect != Dialect::Cuda => bad(format!(
            "for {target} the compiled program is `asm` or `hsaco`"
        )),
        (Emit::Asm | Emit::Hsaco, ..) if dialect != Dialect::Hip => bad(format!(
            "for {target} the compiled program is `ptx` or `cubin`"
        )),
        _ => Ok(emit),
    }
}

/// One call of the command.
struct Compile<'a> {
    args: &'a CompileArgs,
    emit: Emit,
    target: Target,
    sources: &'a SourceMap,
    show: Show<'a>,
    start: Instant,
}

impl Compile<'_> {
    fn run(mut self, func: &Func) -> Outcome {
        let target = self.target;
        match self.emit {
            Emit::Tile => {
                let result = text::print(func);
                let object = json!({ "emit": "tile", "text": result });
                self.write(result.as_bytes(), object)
            }
            Emit::Passes => {
                self.lower(func, Until::Level(Level::Device))?;
                self.write(&[], json!({ "emit": "passes" }))
            }
            Emit::Loop | Emit::Device => {
                let level = match self.emit {
                    Emit::Loop => Level::Loop,
                    _ => Level::Device,
                };
                let func = self.lower(func, Until::Level(level))?;
                let result = text::print(&func);
                let mut object = json!({ "emit": level.name(), "text": result });
                if level == Level::Device {
                    self.report_shared(&func, &mut object);
                }
                self.write(result.as_bytes(), object)
            }
            Emit::Schedule => {
                self.lower(func, Until::Level(Level::Device))?;
                let result = self.show.orders.join("\n");
                let object =
                    json!({ "emit": "schedule", "text": result, "orders": self.show.orders });
                self.write(result.as_bytes(), object)
            }
            Emit::Layouts => {
                self.show.wanted = Some(PLACED);
                let func = self.lower(func, Until::Level(Level::Device))?;
                let placed = self.show.found.take();
                let drawn = placed.map_or_else(Vec::new, |func| layouts::all(&func, target));
                let mut texts: Vec<String> = drawn.iter().map(|d| d.to_text()).collect();
                let list: Vec<Value> = drawn.iter().map(|d| d.to_json()).collect();
                texts.push(shared::to_text(&func, target));
                texts.retain(|t| !t.is_empty());
                let result = texts.join("\n");
                let memory = shared::to_json(&func, target);
                let object = json!({
                    "emit": "layouts", "text": result, "layouts": list, "shared_memory": memory,
                });
                self.write(result.as_bytes(), object)
            }
            Emit::LayoutsSvg => {
                let func = self.lower(func, Until::Pass(PLACED))?;
                let drawn = layouts::all(&func, target);
                let folder = self.args.output.as_deref().unwrap_or(Path::new("."));
                let files = layouts::write_svgs(&drawn, folder).map_err(|d| self.fail(*d))?;
                let lines: String = files.iter().map(|f| format!("{f}\n")).collect();
                self.print(&lines, json!({ "emit": "layouts-svg", "files": files }));
                Ok(())
            }
            Emit::ScheduleSvg => {
                let func = self.lower(func, Until::Level(Level::Device))?;
                let folder = self.args.output.as_deref().unwrap_or(Path::new("."));
                let files = layouts::write_schedules(&func, target, folder);
                let files = files.map_err(|d| self.fail(*d))?;
                if files.is_empty() && !self.args.json {
                    output::note("no loop of the kernel is pipelined: nothing is drawn\n");
                }
                let lines: String = files.iter().map(|f| format!("{f}\n")).collect();
                self.print(&lines, json!({ "emit": "schedule-svg", "files": files }));
                Ok(())
            }
            Emit::Source | Emit::Ptx | Emit::Cubin | Emit::Asm | Emit::Hsaco => {
                let func = self.lower(func, Until::Level(Level::Device))?;
                self.machine(&func)
            }
        }
    }

    fn lower(&mut self, func: &Func, until: Until<'_>) -> Result<Func, Failure> {
        lower::lower(func, self.target, until, self.sources, &mut self.show)
    }

    fn fail(&self, diag: Diagnostic) -> Failure {
        self.show.print_timings();
        self.show.fail(&[diag], self.sources)
    }

    /// What the code generator and the target's compiler make of a lowered function.
    fn machine(mut self, func: &Func) -> Outcome {
        let options = codegen::Options {
            sources: Some(self.sources),
            line_directives: self.args.line_directives,
        };
        let start = Instant::now();
        let source = codegen::generate(func, self.target, options).map_err(|d| self.fail(*d))?;
        self.show.timings.codegen = Some(start.elapsed());
        if self.emit == Emit::Source {
            let mut object = json!({ "emit": "source", "text": source.text });
            self.report_shared(func, &mut object);
            return self.write(source.text.as_bytes(), object);
        }
        match self.emit {
            Emit::Asm | Emit::Hsaco => self.amd(func, &source),
            _ => self.nvidia(func, &source),
        }
    }

    /// What NVIDIA's compiler makes of generated source.
    fn nvidia(mut self, func: &Func, source: &codegen::Source) -> Outcome {
        let ptx = self.emit == Emit::Ptx;
        let options = CompileOptions {
            ptx,
            fast_math: self.args.fast_math,
            name: format!("{}.cu", func.name),
            extra: source.flags.clone(),
            ..CompileOptions::default()
        };
        let start = Instant::now();
        let cubin = Toolchain::find(&Env::process())
            .and_then(|toolchain| toolchain.compile(&source.text, self.target.name(), &options))
            .map_err(|e| {
                self.fail(Diagnostic::error(
                    Code("toolchain"),
                    Span::NONE,
                    e.to_string(),
                ))
            })?;
        self.show.timings.toolchain = Some(start.elapsed());
        let figures: String = cubin.kernels().iter().map(|k| figures(k) + "\n").collect();
        let kernels: Vec<Value> = cubin.kernels().iter().map(to_json).collect();
        if ptx {
            let text = cubin.ptx().unwrap_or_default();
            let mut object = json!({ "emit": "ptx", "text": text, "kernels": kernels });
            self.report_shared(func, &mut object);
            if !self.args.json {
                output::note(&figures);
            }
            return self.write(text.as_bytes(), object);
        }
        let mut object =
            json!({ "emit": "cubin", "bytes": cubin.bytes().len(), "kernels": kernels });
        self.report_shared(func, &mut object);
        self.write_binary(cubin.bytes(), object, &figures)
    }

    /// What clang makes of generated source for an AMD target.
    fn amd(mut self, func: &Func, source: &codegen::Source) -> Outcome {
        let own = self.start.elapsed();
        let program = amd::compile(func, self.target, source, self.args.fast_math)
            .map_err(|d| self.fail(*d))?;
        let toolchain = self.start.elapsed() - own;
        self.show.timings.toolchain = Some(toolchain);
        let start = Instant::now();
        let audits = amd::check(func, self.target, source, &program);
        self.show.timings.audit = Some(start.elapsed());
        let audits = audits.map_err(|errors| {
            // The code that is refused can be looked at.
            if let (Emit::Asm, Some(path)) = (self.emit, &self.args.output) {
                let _ = output::write_file(path, program.asm().as_bytes());
            }
            self.show.print_timings();
            self.show.fail(&errors.into_vec(), self.sources)
        })?;
        let audits: Vec<Value> = audits.iter().map(amd::audit_json).collect();
        let figures: String = program
            .kernels()
            .iter()
            .map(|k| amd_figures(k) + "\n")
            .collect();
        let kernels: Vec<Value> = program.kernels().iter().map(amd::to_json).collect();
        if self.emit == Emit::Asm {
            let object = json!({
                "emit": "asm", "text": program.asm(), "kernels": kernels, "compiled": audits,
            });
            if !self.args.json {
                output::note(&figures);
            }
            return self.write(program.asm().as_bytes(), object);
        }
        let [own, toolchain] = [own, toolchain].map(|time| time.as_secs_f64() * 1e3);
        let object = json!({
            "emit": "hsaco",
            "bytes": program.bytes().len(),
            "kernels": kernels,
            "tilewright_ms": own,
            "toolchain_ms": toolchain,
            "compiled": audits,
        });
        let figures = format!("{figures}Tilewright {own:.1} ms, clang {toolchain:.1} ms\n");
        self.write_binary(program.bytes(), object, &figures)
    }

    /// The shared memory of the kernels: in the object, or beside the result.
    fn report_shared(&self, func: &Func, object: &mut Value) {
        if self.args.json {
            object["shared_memory"] = shared::to_json(func, self.target);
        } else {
            output::note(&shared::to_text(func, self.target));
        }
    }

    /// The result to the file or stdout, and with `--json` the object.
    fn write(&self, result: &[u8], object: Value) -> Outcome {
        if let Some(path) = &self.args.output {
            output::write_file(path, result).map_err(|d| self.fail(*d))?;
        }
        let shown = match self.args.output {
            Some(_) => "".into(),
            None => String::from_utf8_lossy(result),
        };
        self.print(&shown, object);
        Ok(())
    }

    /// A program to the file, and its figures to stdout: bytes do not belong on a terminal.
    fn write_binary(&self, bytes: &[u8], object: Value, figures: &str) -> Outcome {
        if let Some(path) = &self.args.output {
            output::write_file(path, bytes).map_err(|d| self.fail(*d))?;
        }
        self.print(figures, object);
        Ok(())
    }

    /// Text on stdout, or with `--json` the object with `ok` and what was asked of the passes.
    fn print(&self, text: &str, mut object: Value) {
        if self.args.json {
            object["ok"] = json!(true);
            self.show.add_to(&mut object);
            output::print_json(&object);
            return;
        }
        self.show.print_timings();
        output::print(text);
    }
}

/// `matmul: 168 registers, 0 bytes of stack, no spills`
fn figures(kernel: &KernelInfo) -> String {
    let spills = match kernel.spills {
        None => String::new(),
        Some(s) if s.stores == 0 && s.loads == 0 => ", no spills".to_string(),
        Some(s) => format!(
            ", spills: {} bytes stored, {} bytes loaded",
            s.stores, s.loads
        ),
    };
    format!(
        "{}: {} registers, {} bytes of stack{spills}",
        kernel.name, kernel.registers, kernel.stack
    )
}

fn to_json(kernel: &KernelInfo) -> Value {
    json!({
        "name": kernel.name,
        "registers": kernel.registers,
        "static_shared_bytes": kernel.static_shared,
        "stack_bytes": kernel.stack,
        "spill_stores": kernel.spills.map(|s| s.stores),
        "spill_loads": kernel.spills.map(|s| s.loads),
    })
}
