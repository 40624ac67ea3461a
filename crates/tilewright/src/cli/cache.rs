//! `tilewright cache`: the compiled kernels that are kept on this machine.

use std::time::SystemTime;

use clap::{Args, Subcommand};
use serde_json::json;
use tilewright::ir::{Code, Diagnostic, SourceMap, Span};
use tilewright::runtime::cache::{Cache, Reason};
use tilewright::runtime::env::Env;

use super::output::{self, Failure, Outcome};

#[derive(Args, Debug)]
pub struct CacheArgs {
    #[command(subcommand)]
    action: Action,
    /// Print one JSON object.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Clone, Copy, Subcommand, Debug)]
enum Action {
    /// List the kernels, the most recently used first.
    Ls,
    /// Remove all kernels.
    Clear,
    /// Print the folder.
    Path,
}

pub fn cache(args: &CacheArgs) -> Outcome {
    let cache = Cache::open(&Env::process());
    let fail = |reason: Reason| refuse(&reason, args.json);
    match args.action {
        Action::Ls => ls(&cache, args.json).map_err(fail),
        Action::Clear => {
            let swept = cache.clear().map_err(fail)?;
            if args.json {
                let object = json!({ "removed": swept.removed, "bytes": swept.removed_bytes });
                output::print_json(&object);
            } else {
                let size = size(swept.removed_bytes);
                output::print(&format!("removed {} kernels, {size}\n", swept.removed));
            }
            Ok(())
        }
        Action::Path => {
            let path = cache.path().map_err(fail)?.display().to_string();
            match args.json {
                true => output::print_json(&json!({ "path": path })),
                false => output::print(&format!("{path}\n")),
            }
            Ok(())
        }
    }
}

fn ls(cache: &Cache, as_json: bool) -> Result<(), Reason> {
    let entries = cache.ls()?;
    let stats = cache.stats()?;
    let age = |used: SystemTime| SystemTime::now().duration_since(used).unwrap_or_default();
    if as_json {
        let list: Vec<_> = entries
            .iter()
            .map(|e| {
                json!({
                    "key": e.key.to_string(),
                    "label": e.label,
                    "bytes": e.bytes,
                    "used_s_ago": age(e.used).as_secs(),
                })
            })
            .collect();
        output::print_json(&json!({ "entries": list, "bytes": stats.bytes, "cap": stats.cap }));
        return Ok(());
    }
    let mut text = String::new();
    for entry in &entries {
        let key = entry.key.to_string();
        text += &format!(
            "{}  {:>9}  {:>10}  {}\n",
            key.get(..12).unwrap_or(&key),
            size(entry.bytes),
            ago(age(entry.used).as_secs()),
            entry.label
        );
    }
    text += &format!(
        "{} kernels, {} of at most {}\n",
        stats.entries,
        size(stats.bytes),
        size(stats.cap)
    );
    output::print(&text);
    Ok(())
}

fn refuse(reason: &Reason, as_json: bool) -> Failure {
    let diag = Diagnostic::error(Code("kernel-cache"), Span::NONE, reason.to_string());
    output::fail(&[diag], &SourceMap::new(), as_json)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}
