//! `tilewright compile`: a kernel at one level of the compiler.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tilewright::codegen;
use tilewright::ir::{Code, Diagnostic, Level, Span, text};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{CompileOptions, Cubin, KernelInfo, Toolchain};

use super::output::{self, Failure, Outcome};
use super::{KernelArgs, input, lower::lower, passes::parse_target};

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
    /// Write to this file instead of stdout.
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
    /// Source for the target's compiler.
    Source,
    /// What that compiler makes of it, as portable assembly.
    Ptx,
    /// The compiled program.
    Cubin,
}

impl Emit {
    const fn level(self) -> Level {
        match self {
            Emit::Tile => Level::Tile,
            Emit::Loop => Level::Loop,
            Emit::Device | Emit::Source | Emit::Ptx | Emit::Cubin => Level::Device,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Emit::Tile => "tile",
            Emit::Loop => "loop",
            Emit::Device => "device",
            Emit::Source => "source",
            Emit::Ptx => "ptx",
            Emit::Cubin => "cubin",
        }
    }
}

pub fn compile(args: &CompileArgs) -> Outcome {
    let target = parse_target(&args.target)?;
    let loaded = input::load(&args.kernel, args.json)?;
    let sources = &loaded.sources;
    let fail = |diag: Diagnostic| output::fail(&[diag], sources, args.json);
    let func = match args.emit {
        Emit::Tile => loaded.func,
        _ => lower(loaded.func, target, args.emit.level(), sources, args.json)?,
    };
    let generate = || {
        let options = codegen::Options {
            sources: Some(sources),
            line_directives: args.line_directives,
        };
        codegen::generate(&func, target, options).map_err(|d| fail(*d))
    };
    let build = || -> Result<Cubin, Failure> {
        let source = generate()?;
        let options = CompileOptions {
            ptx: args.emit == Emit::Ptx,
            fast_math: args.fast_math,
            name: format!("{}.cu", func.name),
            ..CompileOptions::default()
        };
        Toolchain::find(&Env::process())
            .and_then(|toolchain| toolchain.compile(&source.text, target.name(), &options))
            .map_err(|e| {
                let code = Code("toolchain");
                fail(Diagnostic::error(code, Span::NONE, e.to_string()))
            })
    };
    let mut kernels = Vec::new();
    let result: Vec<u8> = match args.emit {
        Emit::Tile | Emit::Loop | Emit::Device => text::print(&func).into_bytes(),
        Emit::Source => generate()?.text.into_bytes(),
        Emit::Ptx => {
            let cubin = build()?;
            kernels = cubin.kernels().to_vec();
            cubin.ptx().unwrap_or_default().as_bytes().to_vec()
        }
        Emit::Cubin => {
            let cubin = build()?;
            kernels = cubin.kernels().to_vec();
            cubin.bytes().to_vec()
        }
    };
    if let Some(path) = &args.output {
        fs::write(path, &result).map_err(|e| {
            let message = format!("cannot write {}: {e}", path.display());
            fail(Diagnostic::error(Code("unwritable-file"), Span::NONE, message))
        })?;
    }
    let binary = args.emit == Emit::Cubin;
    if args.json {
        let text = (!binary).then(|| String::from_utf8_lossy(&result).into_owned());
        let list: Vec<Value> = kernels.iter().map(to_json).collect();
        output::print_json(&json!({
            "ok": true, "emit": args.emit.name(), "text": text, "bytes": result.len(),
            "kernels": list,
        }));
        return Ok(());
    }
    // Bytes do not belong on a terminal: without a file only the figures are printed.
    if args.output.is_none() && !binary {
        output::print(&String::from_utf8_lossy(&result));
    }
    let figures: Vec<String> = kernels.iter().map(|k| figures(k) + "\n").collect();
    match binary {
        true => output::print(&figures.concat()),
        false => output::note(&figures.concat()),
    }
    Ok(())
}

/// `matmul: 168 registers, 32768 bytes of shared memory, no spills`
pub fn figures(kernel: &KernelInfo) -> String {
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
