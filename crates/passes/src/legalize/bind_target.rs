//! BindTarget: what the target cannot do is said before anything is lowered.
//!
//! Checks each kernel against the target's table: bytes of shared memory that the user's
//! buffers take at once, tensor memory, split-phase matrix instructions, bulk copies, what waits
//! for either. It changes nothing. What is a wish about speed, and not granted, is a warning.
//!
//! Before and after are the same function; what comes out is a diagnostic such as
//! ```text
//! error[shared-memory-limit]: the kernel uses 98304 bytes of shared memory at once, gfx942 has 65536 a block
//! ```
//!
//! Needs tile IR. It never refuses what a later pass can lower by other means.

use std::borrow::Cow;

use tilewright_ir::target::{RegisterMoves, WARP_GROUP};
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Buffer, Code, CopyKind, Counter, DeviceOp, Diagnostic, Diagnostics, FenceKind, Func, GemmKind,
    Kernel, Scope, Span, StmtKind, Target, ThreadOp, TileOp,
};

use crate::Changed;
use crate::legalize::check_resources::most_shared;

const SHARED_MEMORY_LIMIT: Code = Code("shared-memory-limit");
const NOT_ON_TARGET: Code = Code("not-on-target");
const NO_EFFECT: Code = Code("no-effect");
const CLUSTER_SIZE: Code = Code("cluster-size");

/// Checks all kernels against the target.
pub fn bind_target(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    for kernel in &func.kernels {
        shared_memory(func, kernel, target, diags);
        clusters(kernel, target, diags);
        instructions(func, kernel, target, diags);
        registers(kernel, target, diags);
    }
    Changed::No
}

fn shared_memory(func: &Func, kernel: &Kernel, target: Target, diags: &mut Diagnostics) {
    let limit = i64::from(target.machine().shared.bytes);
    let bytes_of = |buffer: Buffer| {
        let data = &func.buffers[buffer];
        let mut extents = data.shape.iter().map(|e| e.as_int());
        let elements = extents.try_fold(1i128, |n, e| n.checked_mul(e?));
        let bits = elements.and_then(|n| n.checked_mul(data.dtype.bits() as i128));
        i64::try_from(bits.map_or(0, |b| (b + 7) / 8)).unwrap_or(i64::MAX)
    };
    let (total, parts) = most_shared(func, kernel, &bytes_of);
    if let Some(&buffer) = parts.first()
        && total > limit
    {
        let data = &func.buffers[buffer];
        diags.push(
            Diagnostic::error(
                SHARED_MEMORY_LIMIT,
                data.span,
                format!(
                    "the kernel uses {total} bytes of shared memory at once, {target} has {limit} a block"
                ),
            )
            .label(format!("`{}` takes {} of them", data.name, bytes_of(buffer)))
            .help("use smaller tiles, or a type of fewer bits"),
        );
    }
}

fn clusters(kernel: &Kernel, target: Target, diags: &mut Diagnostics) {
    let blocks = kernel.cluster_blocks();
    let speaks = kernel.reaches_others() || kernel.attrs.rank.is_some();
    match target.machine().clusters {
        None if blocks > 1 || speaks => {
            let message = format!("{target} has no clusters of blocks");
            diags.push(
                Diagnostic::error(NOT_ON_TARGET, kernel.span, message).help(
                    "leave `cluster_dims` out, or compile for a target that has them (sm_90a)",
                ),
            );
        }
        Some(portable) if blocks > portable => {
            let message = format!(
                "a cluster of {blocks} blocks: only {portable} can be started on every GPU of the \
                 target"
            );
            diags.push(
                Diagnostic::warning(CLUSTER_SIZE, kernel.span, message).help(
                    "use smaller clusters; where no multiprocessors are left for one it never runs",
                ),
            );
        }
        _ => {}
    }
}

fn instructions(func: &Func, kernel: &Kernel, target: Target, diags: &mut Diagnostics) {
    walk_stmts(
        &kernel.body,
        &mut |stmt| match verdict(func, &stmt.kind, target) {
            None => {}
            Some(Verdict::Refused { what, instead }) => {
                let message = format!("{what}, which Tilewright does not lower for {target}");
                diags.push(Diagnostic::error(NOT_ON_TARGET, stmt.span, message).help(instead));
            }
            Some(Verdict::NoEffect { what }) => {
                let message = format!("{what} has no effect on {target}");
                diags.push(Diagnostic::warning(NO_EFFECT, stmt.span, message));
            }
        },
    );
}

/// Warp groups that all say how many registers they want get no more than there are.
fn registers(kernel: &Kernel, target: Target, diags: &mut Diagnostics) {
    let machine = target.machine();
    if machine.registers.moves.is_none() {
        return;
    }
    let groups = kernel.num_threads() / WARP_GROUP;
    let mut wanted = vec![None; groups as usize];
    for stmt in &kernel.body {
        let StmtKind::WarpGroup { groups, body } = &stmt.kind else {
            continue;
        };
        walk_stmts(body, &mut |stmt| {
            if let StmtKind::Thread(ThreadOp::SetMaxRegs { count, .. }) = stmt.kind {
                for group in groups {
                    let own = wanted.get_mut(*group as usize);
                    own.into_iter()
                        .for_each(|own| *own = Some((count, stmt.span)));
                }
            }
        });
    }
    let all: Option<Vec<(u32, Span)>> = wanted.into_iter().collect();
    let Some(most) = all.iter().flatten().max_by_key(|(count, _)| *count) else {
        return;
    };
    let sum: u32 = all.iter().flatten().map(|(count, _)| count).sum();
    let (total, file) = (sum * WARP_GROUP, machine.registers.file);
    if total > file {
        let message = format!("the warp groups ask for {total} registers, {target} has {file}");
        let most = Diagnostic::error(NOT_ON_TARGET, most.1, message);
        diags.push(most.help(format!(
            "the numbers of all groups together are at most {}",
            file / WARP_GROUP
        )));
    }
}

/// What a target does with a statement that it does not take as it stands.
enum Verdict {
    /// Its meaning would be lost.
    Refused {
        what: Cow<'static, str>,
        instead: &'static str,
    },
    /// A wish about speed, and results are the same without it.
    NoEffect { what: &'static str },
}

/// What a target cannot do, of all that the language has. Everything that is not named here is
/// lowered as it stands.
fn verdict(func: &Func, stmt: &StmtKind, target: Target) -> Option<Verdict> {
    let machine = target.machine();
    let refused = |what: &'static str, instead| {
        let what = what.into();
        Some(Verdict::Refused { what, instead })
    };
    match stmt {
        StmtKind::Alloc(b) if func.buffers[*b].scope == Scope::Tmem => {
            refused("this is tensor memory", GEMM)
        }
        StmtKind::Tile(TileOp::Gemm(g)) => match g.kind {
            GemmKind::Auto => None,
            GemmKind::Wgmma if machine.group_mma() => None,
            GemmKind::Wgmma => refused("this is a split-phase wgmma", GEMM),
            GemmKind::Tcgen05 => refused("this is a tcgen05 product", GEMM),
        },
        StmtKind::Tile(TileOp::Copy(c)) => match c.kind {
            CopyKind::Sync => None,
            CopyKind::Async => Some(Verdict::NoEffect {
                what: "asking for an asynchronous copy",
            }),
            CopyKind::Tma { .. } | CopyKind::TmaRows { .. } if machine.bulk_copies => None,
            CopyKind::Tma { .. } | CopyKind::TmaRows { .. } => {
                refused("this is a bulk copy (TMA)", COPY)
            }
        },
        StmtKind::Thread(ThreadOp::BarrierExpect { .. }) if !machine.barrier.expects_bytes => {
            refused("the barrier waits for bytes of bulk copies (TMA)", ARRIVE)
        }
        StmtKind::Thread(ThreadOp::SetMaxRegs { count, .. }) => {
            let Some(moves) = machine.registers.moves else {
                return Some(Verdict::NoEffect {
                    what: "moving registers between warp groups",
                });
            };
            let RegisterMoves {
                least,
                most,
                multiple,
            } = moves;
            let taken = (least..=most).contains(count) && count % multiple == 0;
            (!taken).then(|| Verdict::Refused {
                what: format!(
                    "the number of registers is no multiple of {multiple} from {least} to {most}"
                )
                .into(),
                instead: "use such a multiple, or leave it out",
            })
        }
        StmtKind::Device(op) => match op {
            DeviceOp::Wait { counter, .. } | DeviceOp::Commit(counter) => match counter {
                Counter::Wgmma if machine.group_mma() => None,
                Counter::TmaStore if machine.bulk_copies => None,
                Counter::TmaStore => refused("this is for bulk copies (TMA)", COPY),
                Counter::Wgmma => refused("this is for split-phase wgmma", GEMM),
                // Every copy is complete when it ends.
                Counter::CpAsync if !machine.counts(*counter) => Some(Verdict::NoEffect {
                    what: "a group of asynchronous copies",
                }),
                _ => None,
            },
            DeviceOp::WaitRead { .. } if !machine.bulk_copies => {
                refused("this is for bulk copies (TMA)", COPY)
            }
            DeviceOp::Fence(FenceKind::Wgmma) if machine.group_mma() => None,
            DeviceOp::Fence(FenceKind::Wgmma) => refused("this is for split-phase wgmma", GEMM),
            DeviceOp::Fence(FenceKind::AsyncProxy) if !machine.async_proxy => {
                Some(Verdict::NoEffect {
                    what: "a fence of the asynchronous proxy",
                })
            }
            _ => None,
        },
        _ => None,
    }
}

const GEMM: &str = "use `T.gemm` and fragments, which every target lowers and waits for";
const COPY: &str =
    "use `T.copy`, which is complete when it ends; in a `T.Pipelined` loop it runs ahead";
const ARRIVE: &str = "use `T.copy`, and `T.mbarrier_arrive` after it";
