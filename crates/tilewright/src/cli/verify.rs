//! `tilewright verify`: a lowered kernel before the hazard checker, in the simulator in many orders
//! of its warps, and on AMD what the compiler makes of it against the waits that it asks for.

use clap::Args;
use serde_json::json;
use tilewright::gfx9::audit::Kind;
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
    /// Vector instructions for addresses that a compiled hot loop may have (AMD). More is an error;
    /// without this, more than 64 is a warning.
    #[arg(long)]
    address_budget: Option<u32>,
    /// `v_readfirstlane` and `v_readlane` that a compiled hot loop may have (AMD). More is an
    /// error; without this, more than one is a warning.
    #[arg(long)]
    lane_read_budget: Option<u32>,
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
    let usual = Budget::default();
    let budget = Budget {
        address_arithmetic: args.address_budget.unwrap_or(usual.address_arithmetic),
        lane_reads: args.lane_read_budget.unwrap_or(usual.lane_reads),
    };
    let asked = [
        (args.address_budget, Kind::AddressArithmetic),
        (args.lane_read_budget, Kind::LaneRead),
    ];
    let budgeted: Vec<Kind> = asked
        .into_iter()
        .filter_map(|(budget, kind)| budget.map(|_| kind))
        .collect();
    let audits = match target.is_amd() {
        true => super::amd::audit(&func, target, sources, budget)
            .map_err(|d| output::fail(&[*d], sources, args.json))?,
        false => Vec::new(),
    };
    for audit in &audits {
        hazards.extend(super::amd::findings(audit, &budgeted));
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
