//! `tilewright compile`: a kernel at one level of the compiler, or its layouts drawn.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tilewright::ir::{Code, Diagnostic, Level, SourceMap, Span, text};

use super::lower::{lower, lower_through};
use super::output::{self, Failure, Outcome};
use super::{KernelArgs, input, layouts, passes::parse_target};

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
}

pub fn compile(args: &CompileArgs) -> Outcome {
    let target = parse_target(&args.target)?;
    if args.emit == Emit::LayoutsSvg && args.output.is_none() {
        return Err(Failure::Usage(
            "`--emit layouts-svg` needs a folder to write to: `--output FOLDER`".to_owned(),
        ));
    }
    let loaded = input::load(&args.kernel, args.json)?;
    let sources = &loaded.sources;
    let drawings = |func| {
        lower_through(func, target, "layout-inference", sources, args.json)
            .map(|func| layouts::all(&func, target))
    };
    match args.emit {
        Emit::Tile => {
            let result = text::print(&loaded.func);
            write(
                args,
                sources,
                &result,
                json!({ "emit": "tile", "text": result }),
            )
        }
        Emit::Loop | Emit::Device => {
            let level = if args.emit == Emit::Loop {
                Level::Loop
            } else {
                Level::Device
            };
            let func = lower(loaded.func, target, level, sources, args.json)?;
            let result = text::print(&func);
            let object = json!({ "emit": level.name(), "text": result });
            write(args, sources, &result, object)
        }
        Emit::Layouts => {
            let drawn = drawings(loaded.func)?;
            let texts: Vec<String> = drawn.iter().map(|d| d.to_text()).collect();
            let list: Vec<Value> = drawn.iter().map(|d| d.to_json()).collect();
            let result = texts.join("\n");
            let object = json!({ "emit": "layouts", "text": result, "layouts": list });
            write(args, sources, &result, object)
        }
        Emit::LayoutsSvg => {
            let drawn = drawings(loaded.func)?;
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

/// The result to the file or stdout, and with `--json` the object with `ok` added.
fn write(args: &CompileArgs, sources: &SourceMap, result: &str, mut object: Value) -> Outcome {
    if let Some(path) = &args.output {
        fs::write(path, result).map_err(|e| {
            let message = format!("cannot write {}: {e}", path.display());
            let diag = Diagnostic::error(Code("unwritable-file"), Span::NONE, message);
            output::fail(&[diag], sources, args.json)
        })?;
    }
    if args.json {
        object["ok"] = json!(true);
        output::print_json(&object);
    } else if args.output.is_none() {
        output::print(result);
    }
    Ok(())
}
