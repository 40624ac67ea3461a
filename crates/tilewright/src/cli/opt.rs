//! `tilewright opt`: passes on IR in text form.

use clap::Args;
use serde_json::json;
use tilewright::ir::{Diagnostics, SourceMap, text, verify};
use tilewright::passes::{self, PassInfo};

use super::output::{self, Failure, Outcome};
use super::{input, passes::parse_target};

#[derive(Args, Debug)]
pub struct OptArgs {
    /// IR in text form.
    #[arg(value_name = "FILE.tw")]
    file: String,
    /// Passes to run, in this order. Without any, the IR is parsed, verified and printed.
    #[arg(long = "pass", value_name = "NAME[,NAME…]", value_delimiter = ',')]
    passes: Vec<String>,
    /// The target that the passes lower for.
    #[arg(long, default_value = "gfx950")]
    target: String,
    /// Print one JSON object that holds the text.
    #[arg(long)]
    json: bool,
}

pub fn opt(args: &OptArgs) -> Outcome {
    let target = parse_target(&args.target)?;
    let passes = args
        .passes
        .iter()
        .map(|name| find_pass(name))
        .collect::<Result<Vec<_>, _>>()?;
    let mut sources = SourceMap::new();
    let source = input::read(&args.file).map_err(|d| output::fail(&[*d], &sources, args.json))?;
    let file = sources.add(&args.file, source.as_str());
    let mut func = text::parse(&source, file).map_err(|d| output::fail(&d, &sources, args.json))?;
    verify::verify(&func).map_err(|d| output::fail(&d, &sources, args.json))?;

    for pass in passes {
        let mut diags = Diagnostics::new();
        (pass.run)(&mut func, target, &mut diags);
        let failed = diags.has_errors();
        let diags = diags.into_vec();
        if failed {
            return Err(output::fail(&diags, &sources, args.json));
        }
        output::warn(&diags, &sources);
        verify::verify(&func).map_err(|d| output::fail(&d, &sources, args.json))?;
    }
    let result = text::print(&func);
    if args.json {
        output::print_json(&json!({ "ok": true, "text": result }));
    } else {
        output::print(&result);
    }
    Ok(())
}

fn find_pass(name: &str) -> Result<&'static PassInfo, Failure> {
    passes::find(name).ok_or_else(|| {
        let names: Vec<&str> = passes::PASSES.iter().map(|p| p.name).collect();
        Failure::Usage(format!(
            "unknown pass `{name}`; the passes are {}",
            names.join(", ")
        ))
    })
}
