//! `tilewright doctor`: what this machine has of what Tilewright can use.
//!
//! Nothing here is needed to run kernels on the reference evaluator.

use std::env;
use std::path::PathBuf;
use std::thread;

use clap::Args;
use serde_json::json;

use super::output::{self, Outcome};

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// One thing looked for.
struct Check {
    name: &'static str,
    /// What it is good for.
    purpose: &'static str,
    found: Option<PathBuf>,
    /// How to get it.
    install: &'static str,
}

pub fn doctor(args: &DoctorArgs) -> Outcome {
    let cores = thread::available_parallelism().map_or(1, |n| n.get());
    let checks = checks();
    if args.json {
        let list: Vec<_> = checks
            .iter()
            .map(|c| {
                json!({
                    "name": c.name,
                    "purpose": c.purpose,
                    "found": c.found.as_ref().map(|p| p.display().to_string()),
                    "install": c.install,
                })
            })
            .collect();
        output::print_json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "cores": cores,
            "executors": ["reference"],
            "checks": list,
        }));
        return Ok(());
    }
    let mut text = format!(
        "tilewright {}\n\nexecutors\n  reference   ready, {cores} cores\n\nprograms\n",
        env!("CARGO_PKG_VERSION")
    );
    for check in checks {
        match check.found {
            Some(path) => {
                text += &format!(
                    "  {:11} {} ({})\n",
                    check.name,
                    path.display(),
                    check.purpose
                );
            }
            None => {
                text += &format!(
                    "  {:11} not on PATH: {}; {}\n",
                    check.name, check.purpose, check.install
                );
            }
        }
    }
    output::print(&text);
    Ok(())
}

fn checks() -> Vec<Check> {
    [
        (
            "z3",
            "checks the simplifier and the prover in the tests",
            "run scripts/setup",
        ),
        (
            "valgrind",
            "counts instructions in the benchmarks",
            "install the package valgrind",
        ),
    ]
    .map(|(name, purpose, install)| Check {
        name,
        purpose,
        found: find_program(name),
        install,
    })
    .into()
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}
