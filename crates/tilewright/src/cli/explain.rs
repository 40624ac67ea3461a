//! `tilewright explain`: what a diagnostic means.

use clap::Args;
use serde_json::{Value, json};
use tilewright::explain::{self, Explanation};
use tilewright::ir::nearest::suggestion;

use super::output::{self, Failure, Outcome};

#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// The name in the brackets: `copy-extents` of `error[copy-extents]`.
    #[arg(value_name = "CODE")]
    code: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn explain(args: &ExplainArgs) -> Outcome {
    let Some(code) = &args.code else {
        list(args.json);
        return Ok(());
    };
    // As it stands in a message: `error[copy-extents]`.
    let name = code.split('[').next_back().unwrap_or(code);
    let name = name.trim_end_matches([']', ':']);
    let Some(found) = explain::explain(name) else {
        let codes = explain::all().map(|e| e.code);
        let meant = suggestion(name, codes).map_or_else(String::new, |t| format!("; {t}"));
        return Err(Failure::Usage(format!(
            "no diagnostic is called `{name}`{meant}; `tilewright explain` lists them"
        )));
    };
    if args.json {
        let mut object = to_json(&found);
        object["ok"] = json!(true);
        output::print_json(&object);
    } else {
        let mut text = format!("{}\n  {}\n", found.code, found.meaning);
        if !found.help.is_empty() {
            text += &format!("  help: {}\n", found.help);
        }
        output::print(&text);
    }
    Ok(())
}

fn list(as_json: bool) {
    if as_json {
        let all: Vec<Value> = explain::all().map(|e| to_json(&e)).collect();
        output::print_json(&json!({ "ok": true, "codes": all }));
        return;
    }
    let mut text = String::new();
    for section in explain::sections() {
        text += &format!("{}\n", section.title);
        for e in section.codes {
            text += &format!("  {:26} {}\n", e.code, e.meaning);
        }
    }
    output::print(&text);
}

fn to_json(e: &Explanation) -> Value {
    json!({ "code": e.code, "meaning": e.meaning, "help": e.help })
}
