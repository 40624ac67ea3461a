//! `tilewright doctor`: what this machine has of what Tilewright can use.
//!
//! The findings are the runtime's, plus the programs that only the tests of the project use.
//! Nothing here is needed to run kernels on the reference evaluator or in the simulator.

use std::thread;

use clap::Args;
use serde_json::{Value, json};
use tilewright::runtime::doctor::{self, Finding, Status};
use tilewright::runtime::env::Env;

use super::output::{self, Outcome};

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Programs for work on Tilewright itself: name, what for, how to get it.
const PROGRAMS: [(&str, &str, &str); 2] = [
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
];

pub fn doctor(args: &DoctorArgs) -> Outcome {
    let env = Env::process();
    let cores = thread::available_parallelism().map_or(1, |n| n.get());
    let mut findings = doctor::report(&env);
    let mut executors = vec!["reference", "sim"];
    if findings.iter().any(Finding::is_gpu) {
        executors.push("gpu");
    }
    findings.extend(PROGRAMS.map(|(name, purpose, help)| program(&env, name, purpose, help)));
    if args.json {
        output::print_json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "cores": cores,
            "executors": executors,
            "findings": findings.iter().map(to_json).collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    let mut text = format!(
        "tilewright {}\n\nready    reference evaluator and simulator, {cores} cores\n",
        env!("CARGO_PKG_VERSION")
    );
    for finding in findings {
        text += &format!("{finding}\n");
    }
    output::print(&text);
    Ok(())
}

fn program(env: &Env, name: &str, purpose: &'static str, help: &str) -> Finding {
    let folders = env.paths("PATH");
    let found = folders.iter().map(|f| f.join(name)).find(|p| p.is_file());
    Finding {
        what: name.to_owned(),
        purpose,
        status: match found {
            Some(path) => Status::Found {
                version: "a program".to_owned(),
                place: path.display().to_string(),
            },
            None => Status::Missing {
                looked: vec!["PATH".to_owned()],
                help: help.to_owned(),
            },
        },
    }
}

fn to_json(finding: &Finding) -> Value {
    let (status, details) = match &finding.status {
        Status::Found { version, place } => {
            ("found", json!({ "version": version, "place": place }))
        }
        Status::Missing { looked, help } => ("missing", json!({ "looked": looked, "help": help })),
        Status::Broken { reason, help } => ("broken", json!({ "reason": reason, "help": help })),
    };
    json!({
        "what": finding.what,
        "purpose": finding.purpose,
        "status": status,
        "details": details,
    })
}
