//! `tilewright compile`: a kernel at one level of the compiler, or its layouts drawn.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tilewright::codegen;
use tilewright::ir::{Code, Diagnostic, Func, Level, SourceMap, Span, Target, text};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{CompileOptions, KernelInfo, Toolchain};

use super::amd::{self, figures as amd_figures};
use super::lower::{lower, lower_through};
use super::output::{self, Failure, Outcome};
use super::{KernelArgs, input, layouts, passes::parse_target, shared};

#[derive(Args, Debug)]
pub struct CompileArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// What to print.
    #[arg(long, value_enum, default_value_t = Emit::Tile)]
    emit: Emit,
    /// The target that the kernel is lowered for.
    #[arg(long, default_value = "gfx950")]
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
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Emit {
    /// Tile IR: what the user said.
    Tile,
    /// Loop IR: what one thread does.
    Loop,
    /// Device IR: the same with every barrier written down.
    Device,
    /// Drawings as text: the thread and register of every element of every fragment, the place
    /// of every element of every shared buffer.
    Layouts,
    /// The same drawings as SVG, one file a buffer, in the folder that `--output` names.
    LayoutsSvg,
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
}

pub fn compile(args: &CompileArgs) -> Outcome {
    let start = Instant::now();
    let target = parse_target(&args.target)?;
    if args.emit == Emit::LayoutsSvg && args.output.is_none() {
        return Err(Failure::Usage(
            "`--emit layouts-svg` needs a folder to write to: `--output FOLDER`".to_owned(),
        ));
    }
    let loaded = input::load(&args.kernel, args.json)?;
    let sources = &loaded.sources;
    let drawings = |func: &Func| {
        lower_through(func, target, "layout-inference", sources, args.json)
            .map(|func| layouts::all(&func, target))
    };
    match args.emit {
        Emit::Tile => {
            let result = text::print(&loaded.func);
            let object = json!({ "emit": "tile", "text": result });
            write(args, sources, result.as_bytes(), object)
        }
        Emit::Loop | Emit::Device => {
            let level = if args.emit == Emit::Loop {
                Level::Loop
            } else {
                Level::Device
            };
            let func = lower(&loaded.func, target, level, sources, args.json)?;
            let result = text::print(&func);
            let mut object = json!({ "emit": level.name(), "text": result });
            if level == Level::Device {
                report_shared(args, &func, target, &mut object);
            }
            write(args, sources, result.as_bytes(), object)
        }
        Emit::Layouts => {
            let drawn = drawings(&loaded.func)?;
            let func = lower(&loaded.func, target, Level::Device, sources, args.json)?;
            let mut texts: Vec<String> = drawn.iter().map(|d| d.to_text()).collect();
            let list: Vec<Value> = drawn.iter().map(|d| d.to_json()).collect();
            texts.push(shared::to_text(&func, target));
            texts.retain(|t| !t.is_empty());
            let result = texts.join("\n");
            let memory = shared::to_json(&func, target);
            let object = json!({
                "emit": "layouts", "text": result, "layouts": list, "shared_memory": memory,
            });
            write(args, sources, result.as_bytes(), object)
        }
        Emit::Source | Emit::Ptx | Emit::Cubin | Emit::Asm | Emit::Hsaco => {
            let amd = matches!(args.emit, Emit::Asm | Emit::Hsaco);
            if args.emit != Emit::Source && amd != target.is_amd() {
                let right = match target.is_amd() {
                    true => "`asm` or `hsaco`",
                    false => "`ptx` or `cubin`",
                };
                return Err(Failure::Usage(format!(
                    "for {target} the compiled program is {right}"
                )));
            }
            let func = lower(&loaded.func, target, Level::Device, sources, args.json)?;
            machine(args, &func, target, sources, start)
        }
        Emit::LayoutsSvg => {
            let drawn = drawings(&loaded.func)?;
            let folder = args.output.as_deref().unwrap_or(Path::new("."));
            let files = layouts::write_svgs(&drawn, folder)
                .map_err(|d| output::fail(&[*d], sources, args.json))?;
            if args.json {
                output::print_json(&json!({ "ok": true, "emit": "layouts-svg", "files": files }));
            } else {
                output::print(&files.iter().map(|f| format!("{f}\n")).collect::<String>());
            }
            Ok(())
        }
    }
}

/// What the code generator and the target's compiler make of a lowered function.
fn machine(
    args: &CompileArgs,
    func: &Func,
    target: Target,
    sources: &SourceMap,
    start: Instant,
) -> Outcome {
    let fail = |diag: Diagnostic| output::fail(&[diag], sources, args.json);
    let options = codegen::Options {
        sources: Some(sources),
        line_directives: args.line_directives,
    };
    let source = codegen::generate(func, target, options).map_err(|d| fail(*d))?;
    if args.emit == Emit::Source {
        let mut object = json!({ "emit": "source", "text": source.text });
        report_shared(args, func, target, &mut object);
        return write(args, sources, source.text.as_bytes(), object);
    }
    if target.is_amd() {
        return amd(args, func, target, &source, sources, start);
    }
    let ptx = args.emit == Emit::Ptx;
    let options = CompileOptions {
        ptx,
        fast_math: args.fast_math,
        name: format!("{}.cu", func.name),
        extra: func.attrs.compile_flags.clone(),
        ..CompileOptions::default()
    };
    let cubin = Toolchain::find(&Env::process())
        .and_then(|toolchain| toolchain.compile(&source.text, target.name(), &options))
        .map_err(|e| {
            fail(Diagnostic::error(
                Code("toolchain"),
                Span::NONE,
                e.to_string(),
            ))
        })?;
    let figures: String = cubin.kernels().iter().map(|k| figures(k) + "\n").collect();
    let kernels: Vec<Value> = cubin.kernels().iter().map(to_json).collect();
    if ptx {
        let text = cubin.ptx().unwrap_or_default();
        let mut object = json!({ "emit": "ptx", "text": text, "kernels": kernels });
        report_shared(args, func, target, &mut object);
        if !args.json {
            output::note(&figures);
        }
        return write(args, sources, text.as_bytes(), object);
    }
    let mut object = json!({ "emit": "cubin", "bytes": cubin.bytes().len(), "kernels": kernels });
    report_shared(args, func, target, &mut object);
    if args.output.is_some() {
        write(args, sources, cubin.bytes(), object)?;
    } else if args.json {
        write(args, sources, &[], object)?;
    }
    if !args.json {
        // Bytes do not belong on a terminal: the figures do.
        output::print(&figures);
    }
    Ok(())
}

/// What clang makes of generated source for an AMD target.
fn amd(
    args: &CompileArgs,
    func: &Func,
    target: Target,
    source: &codegen::Source,
    sources: &SourceMap,
    start: Instant,
) -> Outcome {
    let own = start.elapsed();
    let program = amd::compile(func, target, source, args.fast_math)
        .map_err(|d| output::fail(&[*d], sources, args.json))?;
    let toolchain = start.elapsed() - own;
    let figures: String = program
        .kernels()
        .iter()
        .map(|k| amd_figures(k) + "\n")
        .collect();
    let kernels: Vec<Value> = program.kernels().iter().map(amd::to_json).collect();
    if args.emit == Emit::Asm {
        let object = json!({ "emit": "asm", "text": program.asm(), "kernels": kernels });
        if !args.json {
            output::note(&figures);
        }
        return write(args, sources, program.asm().as_bytes(), object);
    }
    let [own, toolchain] = [own, toolchain].map(|time| time.as_secs_f64() * 1e3);
    let object = json!({
        "emit": "hsaco",
        "bytes": program.bytes().len(),
        "kernels": kernels,
        "tilewright_ms": own,
        "toolchain_ms": toolchain,
    });
    let figures = format!("{figures}Tilewright {own:.1} ms, clang {toolchain:.1} ms\n");
    if args.output.is_some() {
        write(args, sources, program.bytes(), object)?;
    } else if args.json {
        write(args, sources, &[], object)?;
    }
    if !args.json {
        output::print(&figures);
    }
    Ok(())
}

/// The shared memory of the kernels: in the object, or beside the result.
fn report_shared(args: &CompileArgs, func: &Func, target: Target, object: &mut Value) {
    if args.json {
        object["shared_memory"] = shared::to_json(func, target);
    } else {
        output::note(&shared::to_text(func, target));
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

/// The result to the file or stdout, and with `--json` the object with `ok` added.
fn write(args: &CompileArgs, sources: &SourceMap, result: &[u8], mut object: Value) -> Outcome {
    if let Some(path) = &args.output {
        output::write_file(path, result).map_err(|d| output::fail(&[*d], sources, args.json))?;
    }
    if args.json {
        object["ok"] = json!(true);
        output::print_json(&object);
    } else if args.output.is_none() {
        output::print(&String::from_utf8_lossy(result));
    }
    Ok(())
}
