//! `tilewright verify`: a lowered kernel before the hazard checker, in the simulator in many orders
//! of its warps, and on AMD what the compiler makes of it against the waits that it asks for.

use clap::Args;
use serde_json::json;
use tilewright::ir::{Level, Severity};
use tilewright::jit::audit::Budget;
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, Interleaving, Landing, SimtOptions};

use super::output::{self, Failure, Outcome};
use super::{KernelArgs, input, lower::lower, passes::parse_target, run::inputs};

#[derive(Args, Debug)]
pub struct VerifyArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// The target that the kernel is lowered for.
    #[arg(long, default_value = "gfx950")]
    target: String,
    /// Orders of warps to try, in each mode.
    #[arg(long, default_value_t = 5)]
    seeds: u64,
    /// Vector instructions for addresses that a compiled hot loop may have (AMD).
    #[arg(long, default_value_t = Budget::default().address_arithmetic)]
    address_budget: u32,
    /// `v_readfirstlane` and `v_readlane` that a compiled hot loop may have (AMD).
    #[arg(long, default_value_t = Budget::default().lane_reads)]
    lane_read_budget: u32,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn verify(args: &VerifyArgs) -> Outcome {
    let target = parse_target(&args.target)?;
    let loaded = input::load(&args.kernel, args.json)?;
    let sources = &loaded.sources;
    let spec = inputs(&loaded, 0).0;
    let func = match loaded.func.level {
        // A schedule written by hand is checked as it stands.
        Level::Device => loaded.func.clone(),
        Level::Tile | Level::Loop => lower(
            loaded.func.clone(),
            target,
            Level::Device,
            sources,
            args.json,
        )?,
    };
    let checked = hazard::check(&func, target);
    let mut modes = Vec::new();
    let mut hazards = checked.diagnostics().into_vec();
    for landing in Landing::ALL {
        for interleaving in [Interleaving::UntilBlocked, Interleaving::EveryStatement] {
            modes.push(format!("{landing:?} {interleaving:?}"));
            for seed in 0..args.seeds {
                let mut tensors = tilewright::sim::make_inputs(&func, &spec)
                    .map_err(|e| output::fail(&e.diagnostics.into_vec(), sources, args.json))?;
                let options = SimtOptions {
                    seed,
                    interleaving,
                    landing,
                    ..SimtOptions::default()
                };
                let report = simt::run(&func, target, &mut tensors, &options)
                    .map_err(|e| output::fail(&e.diagnostics.into_vec(), sources, args.json))?;
                for found in report.diagnostics().into_vec() {
                    if !hazards.contains(&found) {
                        hazards.push(found);
                    }
                }
            }
        }
    }
    let budget = Budget {
        address_arithmetic: args.address_budget,
        lane_reads: args.lane_read_budget,
    };
    let audits = match target.is_amd() {
        true => super::amd::audit(&func, target, sources, budget)
            .map_err(|d| output::fail(&[*d], sources, args.json))?,
        false => Vec::new(),
    };
    for found in audits.iter().flat_map(super::amd::findings) {
        hazards.push(found);
    }
    output::warn(&hazards, sources);
    // What could not be decided is a warning: nothing wrong was found.
    let ok = !hazards.iter().any(|d| d.severity == Severity::Error);
    let proved = checked.is_clean();
    if args.json {
        let list: Vec<_> = hazards
            .iter()
            .map(|d| output::to_json(d, sources))
            .collect();
        output::print_json(&json!({
            "ok": ok,
            "target": target.name(),
            "proved": proved,
            "hazards": list,
            "modes": modes,
            "compiled": audits.iter().map(super::amd::audit_json).collect::<Vec<_>>(),
        }));
    } else if ok {
        let proof = match proved {
            true => "proved free of hazards",
            false => "not proved free of hazards",
        };
        output::print(&format!(
            "{} for {target}: {proof}; nothing wrong in {} modes, {} orders of warps each\n",
            func.name,
            modes.len(),
            args.seeds
        ));
        for audit in &audits {
            output::print(&super::amd::audit_line(audit));
        }
    }
    if ok { Ok(()) } else { Err(Failure::User) }
}
