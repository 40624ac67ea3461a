//! `tilewright compile`: a kernel at one level of the compiler.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;
use tilewright::ir::{Code, Diagnostic, Span, text};

use super::output::{self, Outcome};
use super::{KernelArgs, input};

#[derive(Args, Debug)]
pub struct CompileArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// What to print.
    #[arg(long, value_enum, default_value_t = Emit::Tile)]
    emit: Emit,
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
}

pub fn compile(args: &CompileArgs) -> Outcome {
    let loaded = input::load(&args.kernel, args.json)?;
    let result = match args.emit {
        Emit::Tile => text::print(&loaded.func),
    };
    if let Some(path) = &args.output {
        fs::write(path, &result).map_err(|e| {
            let message = format!("cannot write {}: {e}", path.display());
            let diag = Diagnostic::error(Code("unwritable-file"), Span::NONE, message);
            output::fail(&[diag], &loaded.sources, args.json)
        })?;
    }
    if args.json {
        output::print_json(&json!({ "ok": true, "emit": "tile", "text": result }));
    } else if args.output.is_none() {
        output::print(&result);
    }
    Ok(())
}
