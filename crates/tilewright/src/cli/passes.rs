//! `tilewright passes`: the ordered pipeline of a target.

use clap::Args;
use serde_json::json;
use tilewright::ir::Target;
use tilewright::passes;

use super::output::{self, Failure, Outcome};

#[derive(Args, Debug)]
pub struct PassesArgs {
    /// The target whose pipeline to list.
    #[arg(long, default_value = Target::DEFAULT.name())]
    target: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn passes(args: &PassesArgs) -> Outcome {
    let target = parse_target(&args.target)?;
    let pipeline = passes::pipeline(target);
    if args.json {
        let list: Vec<_> = pipeline
            .iter()
            .map(|p| json!({ "name": p.name, "about": p.about }))
            .collect();
        output::print_json(&json!({ "target": target.name(), "passes": list }));
        return Ok(());
    }
    let width = pipeline.iter().map(|p| p.name.len()).max().unwrap_or(0);
    for pass in pipeline {
        output::print(&format!("{:width$}  {}\n", pass.name, pass.about));
    }
    Ok(())
}

/// The target of this name, or the names there are.
pub fn parse_target(name: &str) -> Result<Target, Failure> {
    Target::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Target::ALL.iter().map(|t| t.name()).collect();
        Failure::Usage(format!(
            "unknown target `{name}`; the targets are {}",
            names.join(", ")
        ))
    })
}
