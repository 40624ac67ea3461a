//! The checker can fail: without any one of the barriers and waits that a correct program needs,
//! something is found, whatever the order of warps and the landing of copies.

use std::path::Path;

use tilewright_ir::visit::child_blocks_mut;
use tilewright_ir::{Block, DeviceOp, Func, StmtKind, ThreadOp};
use tilewright_sim::InputSpec;
use tilewright_sim::simt::Landing;

use crate::common::{Module, ways};
use crate::files::header;

/// Removes the barrier or wait of this number, in program order. `None` when there are fewer.
fn without(func: &Func, number: usize) -> Option<(Func, tilewright_ir::Span)> {
    fn remove(block: &mut Block, left: &mut usize) -> Option<tilewright_ir::Span> {
        for at in 0..block.len() {
            let orders = matches!(
                block[at].kind,
                StmtKind::Device(
                    DeviceOp::Barrier(_) | DeviceOp::Wait { .. } | DeviceOp::WaitRead { .. }
                ) | StmtKind::Thread(
                    ThreadOp::SyncThreads { .. }
                        | ThreadOp::SyncWarp
                        | ThreadOp::BarrierArrive { .. }
                        | ThreadOp::BarrierWait { .. }
                )
            );
            if orders {
                if *left == 0 {
                    return Some(block.remove(at).span);
                }
                *left -= 1;
            }
            for inner in child_blocks_mut(&mut block[at]) {
                if let Some(span) = remove(inner, left) {
                    return Some(span);
                }
            }
        }
        None
    }
    let mut func = func.clone();
    let mut left = number;
    let span = func
        .kernels
        .iter_mut()
        .find_map(|kernel| remove(&mut kernel.body, &mut left))?;
    Some((func, span))
}

#[test]
fn every_needed_barrier_and_wait_is_missed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simt");
    let mut removed = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of this test") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        if !text.contains("# needed: all barriers and waits\n") {
            continue;
        }
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_string();
        let mut module = Module::parse(&name, &text);
        let header = header(&text);
        let original = module.func().clone();
        let spec: &InputSpec = &header.spec;
        for number in 0.. {
            let Some((func, span)) = without(&original, number) else {
                break;
            };
            removed += 1;
            module.funcs[0] = func;
            for &target in &header.targets {
                for landing in Landing::ALL {
                    for mut opts in ways() {
                        opts.landing = landing;
                        opts.first_only = true;
                        let outcome = module.simulate(target, spec, &opts);
                        assert!(
                            !outcome.report.is_clean(),
                            "{}: removing it is not noticed on {target}, seed {}, {landing:?}",
                            module.sources.locate(span),
                            opts.seed
                        );
                    }
                }
            }
        }
    }
    assert!(removed >= 15, "only {removed} mutants");
}
