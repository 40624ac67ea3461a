//! `tilewright compile`: a kernel at one level of the compiler.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;
use tilewright::ir::{Code, Diagnostic, Level, Span, text};

use super::output::{self, Outcome};
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
}

impl Emit {
    const fn level(self) -> Level {
        match self {
            Emit::Tile => Level::Tile,
            Emit::Loop => Level::Loop,
            Emit::Device => Level::Device,
        }
    }
}

pub fn compile(args: &CompileArgs) -> Outcome {
    let target = parse_target(&args.target)?;
    let loaded = input::load(&args.kernel, args.json)?;
    let level = args.emit.level();
    let func = match args.emit {
        Emit::Tile => loaded.func,
        Emit::Loop | Emit::Device => lower(loaded.func, target, level, &loaded.sources, args.json)?,
    };
    let result = text::print(&func);
    if let Some(path) = &args.output {
        fs::write(path, &result).map_err(|e| {
            let message = format!("cannot write {}: {e}", path.display());
            let diag = Diagnostic::error(Code("unwritable-file"), Span::NONE, message);
            output::fail(&[diag], &loaded.sources, args.json)
        })?;
    }
    if args.json {
        output::print_json(&json!({ "ok": true, "emit": level.name(), "text": result }));
    } else if args.output.is_none() {
        output::print(&result);
    }
    Ok(())
}
