//! Synchronisation: block barriers, warp groups, groups of asynchronous operations, fences,
//! register hints.

use std::rc::Rc;

use tilewright_ir::target::{NAMED_BARRIERS, WARP_GROUP};
use tilewright_ir::{Counter, DeviceOp, FenceKind, Span, StmtKind, ThreadOp, VoteKind};

use super::{CallArgs, LangFn, ParamSpec, Ty, func, opt, req, rest};
use crate::record::Recorder;
use crate::record::emit::BlockKind;
use crate::value::{Frame, Value};
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "sync_threads",
        &[opt("barrier_id", Ty::Int), opt("arrive_count", Ty::Int)],
        sync_threads,
    ),
    func("sync_warp", &[opt("mask", Ty::Any)], |rec, args| {
        if let Some(mask) = args.value("mask").cloned() {
            super::warp::check_full_mask(rec, &mask, args.span_of("mask"))?;
        }
        rec.emit_thread(ThreadOp::SyncWarp)?;
        Ok(Value::None)
    }),
    func("sync_grid", &[], sync_grid),
    func("sync_global", &[], sync_grid),
    func(
        "tvm_storage_sync",
        &[req("scope", Ty::Str), rest("args", Ty::Any)],
        storage_sync,
    ),
    func("syncthreads_count", PREDICATE, |s, a| {
        super::warp::vote(s, a, VoteKind::BlockCount)
    }),
    func("syncthreads_and", PREDICATE, |s, a| {
        super::warp::vote(s, a, VoteKind::BlockAnd)
    }),
    func("syncthreads_or", PREDICATE, |s, a| {
        super::warp::vote(s, a, VoteKind::BlockOr)
    }),
    func("ws", &[rest("warp_group_idx", Ty::Int)], warp_groups),
    func(
        "WarpSpecialize",
        &[rest("warp_group_idx", Ty::Int)],
        warp_groups,
    ),
    func(
        "set_max_nreg",
        &[req("reg_count", Ty::Int), req("is_inc", Ty::Int)],
        |rec, args| {
            let increase = args.int_or(rec, "is_inc", 0)? != 0;
            registers(rec, args, 0, increase)
        },
    ),
    func("inc_max_nreg", &[req("reg_count", Ty::Int)], |s, a| {
        registers(s, a, 0, true)
    }),
    func("dec_max_nreg", &[req("reg_count", Ty::Int)], |s, a| {
        registers(s, a, 0, false)
    }),
    func(
        "annotate_producer_reg_dealloc",
        &[opt("reg_count", Ty::Int)],
        |s, a| registers(s, a, 24, false),
    ),
    func(
        "annotate_consumer_reg_alloc",
        &[opt("reg_count", Ty::Int)],
        |s, a| registers(s, a, 240, true),
    ),
    func("no_set_max_nreg", &[], no_reg_realloc),
    func("disable_warp_group_reg_alloc", &[], no_reg_realloc),
    // A kernel starts when the one before it has ended, so there is nothing to wait for.
    func("pdl_sync", &[], launch_order),
    func("pdl_trigger", &[], launch_order),
    func("fence_proxy_async", &[], |s, _| {
        device(s, DeviceOp::Fence(FenceKind::AsyncProxy))
    }),
    func("ptx_fence_barrier_init", &[], |s, _| {
        device(s, DeviceOp::Fence(FenceKind::BarrierInit))
    }),
    func("ptx_commit_group", &[], |s, _| {
        device(s, DeviceOp::Commit(Counter::CpAsync))
    }),
    func("ptx_wait_group", &[req("num", Ty::Int)], |s, a| {
        wait(s, a, "num", Counter::CpAsync)
    }),
    func("tma_store_arrive", &[], |s, _| {
        device(s, DeviceOp::Commit(Counter::TmaStore))
    }),
    func(
        "tma_store_wait",
        &[opt("count", Ty::Int), opt("read", Ty::Bool)],
        |s, a| {
            let at_most = left_in_flight(s, a, "count")?;
            let op = match a.bool_or(s, "read", true)? {
                true => DeviceOp::WaitRead { at_most },
                false => DeviceOp::Wait {
                    counter: Counter::TmaStore,
                    at_most,
                },
            };
            device(s, op)
        },
    ),
    func("wait_wgmma", &[req("id", Ty::Int)], |s, a| {
        wait(s, a, "id", Counter::Wgmma)
    }),
    func("warpgroup_arrive", &[], |s, _| {
        device(s, DeviceOp::Fence(FenceKind::Wgmma))
    }),
    func("warpgroup_commit_batch", &[], |s, _| {
        device(s, DeviceOp::Commit(Counter::Wgmma))
    }),
    func("warpgroup_wait", &[req("num_mma", Ty::Int)], |s, a| {
        wait(s, a, "num_mma", Counter::Wgmma)
    }),
];

const PREDICATE: &[ParamSpec] = &[req("predicate", Ty::Scalar)];

fn sync_threads(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    check_uniform(rec, args, "T.sync_threads")?;
    let threads = rec.kernel("`T.sync_threads`")?.num_threads();
    let id = args.int(rec, "barrier_id")?;
    let count = args.int(rec, "arrive_count")?;
    let named = match (id, count) {
        (None, None) => None,
        (None, Some(_)) => {
            return Err(rec
                .error(
                    codes::BARRIER,
                    args.span(),
                    "T.sync_threads: a count needs the id of a named barrier",
                )
                .help("write `T.sync_threads(barrier_id, arrive_count)`")
                .into());
        }
        (Some(id), count) => {
            if !(0..i64::from(NAMED_BARRIERS)).contains(&id) {
                return Err(rec
                    .error(
                        codes::BARRIER,
                        args.span_of("barrier_id"),
                        format!("named barriers are 0 to 15, this is {id}"),
                    )
                    .help("use a number from 1 to 15; 0 is the block's own")
                    .into());
            }
            let count = count.unwrap_or(i64::from(threads));
            if count <= 0 || count > i64::from(threads) || count % 32 != 0 {
                return Err(rec
                    .error(
                        codes::BARRIER,
                        args.span_of("arrive_count"),
                        format!(
                            "{count} threads cannot meet: whole warps of a block of {threads} do"
                        ),
                    )
                    .help("the count is a multiple of 32, at most the threads of the block")
                    .into());
            }
            Some((id as u32, count as u32))
        }
    };
    rec.emit_thread(ThreadOp::SyncThreads { named })?;
    Ok(Value::None)
}

fn sync_grid(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    check_uniform(rec, args, "T.sync_grid")?;
    rec.emit_thread(ThreadOp::SyncGrid)?;
    Ok(Value::None)
}

fn storage_sync(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    check_uniform(rec, args, "T.tvm_storage_sync")?;
    let scope = args.str("scope").unwrap_or_default();
    let op = match scope {
        "shared" | "shared.dyn" => ThreadOp::SyncThreads { named: None },
        "warp" => ThreadOp::SyncWarp,
        "global" => ThreadOp::SyncGrid,
        other => {
            return Err(rec
                .error(
                    codes::BAD_OPTION,
                    args.span_of("scope"),
                    format!("\"{other}\" is no scope to synchronise"),
                )
                .help("use \"shared\", \"warp\" or \"global\"")
                .into());
        }
    };
    rec.emit_thread(op)?;
    Ok(Value::None)
}

/// A barrier of the block stands where all threads pass together, not at single points.
pub(super) fn check_uniform(rec: &Recorder, args: &CallArgs, what: &str) -> Result<()> {
    if !rec.in_parallel() {
        return Ok(());
    }
    Err(rec
        .error(
            codes::BARRIER,
            args.span(),
            format!("{what} inside `T.Parallel`: the points of the loop do not pass together"),
        )
        .help("end the loop before it; barriers between tile operations are added for you")
        .into())
}

fn warp_groups(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.ws";
    let threads = rec.kernel("`T.ws`")?.num_threads();
    if args.rest().is_empty() {
        return Err(rec
            .error(
                codes::WRONG_ARITY,
                args.span(),
                "T.ws names at least one warp group",
            )
            .help("write `with T.ws(0):`; group i is the threads 128 * i to 128 * i + 127")
            .into());
    }
    let mut groups = Vec::new();
    for arg in args.rest() {
        let n = rec.to_int(&arg.value.clone(), arg.span, "a warp group")?;
        let group = u32::try_from(n)
            .ok()
            .filter(|g| (u64::from(*g) + 1) * u64::from(WARP_GROUP) <= u64::from(threads));
        let Some(group) = group else {
            return Err(rec
                .error(
                    codes::WARP_GROUP,
                    arg.span,
                    format!(
                        "{WHAT}: there is no warp group {n}; {threads} threads make {}",
                        match threads / WARP_GROUP {
                            0 => "no whole group of 128".to_string(),
                            1 => "one group of 128, number 0".to_string(),
                            n => format!("{n} groups of 128, numbers 0 to {}", n - 1),
                        }
                    ),
                )
                .help("raise `threads` of the kernel, or use a smaller group number")
                .into());
        };
        if groups.contains(&group) {
            return Err(rec
                .error(
                    codes::WARP_GROUP,
                    arg.span,
                    format!("{WHAT}: the warp group {group} is named twice"),
                )
                .help("name each group once")
                .into());
        }
        groups.push(group);
    }
    if rec.in_parallel() {
        return Err(rec
            .error(
                codes::WARP_GROUP,
                args.span(),
                "T.ws inside `T.Parallel`: the loop's points already belong to all threads",
            )
            .help("put the parallel loop inside the `with T.ws` suite")
            .into());
    }
    Ok(Value::Frame(Rc::new(WarpGroupFrame { groups })))
}

#[derive(Debug)]
struct WarpGroupFrame {
    groups: Vec<u32>,
}

impl Frame for WarpGroupFrame {
    fn enter(&self, rec: &mut Recorder, span: Span) -> Result<Value> {
        if rec.lang.warp_groups > 0 {
            return Err(rec
                .error(codes::WARP_GROUP, span, "a `T.ws` suite inside another")
                .help(
                    "the inner suite's threads are a part of the outer one's; use one suite a role",
                )
                .into());
        }
        rec.lang.warp_groups += 1;
        rec.open_block(BlockKind::Frame, span)?;
        Ok(Value::None)
    }

    fn exit(&self, rec: &mut Recorder, span: Span) -> Result<()> {
        rec.lang.warp_groups = rec.lang.warp_groups.saturating_sub(1);
        let body = rec.close_block();
        let groups = self.groups.clone();
        rec.emit_at(StmtKind::WarpGroup { groups, body }, span)
    }
}

fn registers(rec: &mut Recorder, args: &CallArgs, default: i64, increase: bool) -> Result<Value> {
    let count = args.int_or(rec, "reg_count", default)?;
    let Some(count) = u32::try_from(count).ok().filter(|n| *n <= 512) else {
        return Err(rec
            .error(
                codes::BAD_OPTION,
                args.span_of("reg_count"),
                format!("a thread has at most 512 registers, this is {count}"),
            )
            .help("leave it out; the compiler knows how many are needed")
            .into());
    };
    rec.emit_thread(ThreadOp::SetMaxRegs { count, increase })?;
    Ok(Value::None)
}

fn launch_order(rec: &mut Recorder, _: &CallArgs) -> Result<Value> {
    rec.kernel("an order of launches")?;
    Ok(Value::None)
}

fn no_reg_realloc(rec: &mut Recorder, _: &CallArgs) -> Result<Value> {
    rec.kernel_mut("a register hint")?.attrs.no_reg_realloc = true;
    Ok(Value::None)
}

fn device(rec: &mut Recorder, op: DeviceOp) -> Result<Value> {
    rec.emit(StmtKind::Device(op))?;
    Ok(Value::None)
}

fn wait(rec: &mut Recorder, args: &CallArgs, name: &str, counter: Counter) -> Result<Value> {
    let at_most = left_in_flight(rec, args, name)?;
    device(rec, DeviceOp::Wait { counter, at_most })
}

/// How many groups a wait leaves in flight.
fn left_in_flight(rec: &mut Recorder, args: &CallArgs, name: &str) -> Result<u32> {
    let n = args.int_or(rec, name, 0)?;
    let Some(at_most) = u32::try_from(n).ok().filter(|n| *n <= 63) else {
        return Err(rec
            .error(
                codes::WRONG_VALUE,
                args.span_of(name),
                format!("between 0 and 63 groups may stay in flight, this is {n}"),
            )
            .help("0 waits for all of them")
            .into());
    };
    Ok(at_most)
}
