//! Faults planted in how kernels for Hopper synchronise, one at a time: the hazard checker finds each,
//! and so does the simulator, each by itself.
//!
//! The kernels are examples as the compiler lowers them for sm_90a: a producer with two consumers,
//! blocks in pairs, blocks that stay, products that overlap, results that go out in parts, consumers
//! that take turns, sums in registers beside the product, and a loop without a producer. Every arrival
//! barrier, phase, count of bytes, bulk load, fence, group and wait in them gets each fault that its kind
//! can have.
//!
//! A fault that neither finds must be none: [`HARMLESS`] says which those are, and why.

#[path = "corpus/stage.rs"]
mod stage;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use libtest_mimic::Failed;
use tilewright::ir::visit::{child_blocks_mut, walk_stmts};
use tilewright::ir::{
    Arrival, ArriveAt, Block, Buffer, BufferOrigin, DeviceOp, Expr, FenceKind, Func, Level,
    MicroKind, MicroOp, Stmt, StmtKind, Target, ThreadOp, text, verify,
};
use tilewright::lowering::{self, Until};
use tilewright::passes::decisions::{Decision, OVERLAP, PAIRS, SPLIT_K};
use tilewright::passes::schedules::ask_for_schedule;
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, Interleaving, Landing, SimtOptions, When};
use tilewright::sim::{self, Args, InputSpec, RunOptions};
use tilewright::verdict::{Compared, verdict};

const TARGET: Target = Target::Sm90a;

/// A kernel that gets faults. Loops run often enough that every version is used a third time.
struct Kernel {
    name: &'static str,
    file: &'static str,
    settings: &'static [(&'static str, &'static str)],
    schedule: &'static str,
    decisions: &'static [(Decision, bool)],
    /// What its lowered text has, or it would not be what it is here for.
    has: &'static [&'static str],
    /// Blocks that are simulated, where the grid is large.
    sample: Option<u64>,
}

/// More tiles than multiprocessors: the first blocks take two.
const STAYING: &[(&str, &str)] = &[
    ("M", "768"),
    ("N", "768"),
    ("K", "640"),
    ("block_M", "64"),
    ("block_N", "64"),
    ("block_K", "128"),
    ("num_stages", "4"),
    ("dtype", "bfloat16"),
    ("trans_B", "True"),
];

const KERNELS: &[Kernel] = &[
    Kernel {
        name: "two consumers",
        file: "gemm.py",
        settings: &[
            ("M", "128"),
            ("N", "256"),
            ("K", "320"),
            ("block_N", "256"),
            ("block_K", "64"),
            ("num_stages", "2"),
            ("threads", "256"),
            ("dtype", "bfloat16"),
            ("trans_B", "True"),
        ],
        schedule: "producer_consumer",
        decisions: &[],
        has: &["warp_group 0, 1 {", "warp_group 2 {"],
        sample: None,
    },
    Kernel {
        name: "pairs",
        file: "gemm.py",
        settings: &[
            ("M", "128"),
            ("N", "128"),
            ("K", "320"),
            ("block_M", "64"),
            ("block_K", "64"),
            ("num_stages", "2"),
            ("dtype", "bfloat16"),
            ("trans_B", "True"),
        ],
        schedule: "producer_consumer",
        decisions: &[(PAIRS, true)],
        has: &["multicast", "sync_cluster"],
        sample: None,
    },
    Kernel {
        name: "blocks that stay",
        file: "gemm.py",
        settings: STAYING,
        schedule: "producer_consumer",
        decisions: &[(PAIRS, false)],
        has: &["resident", "for round in"],
        sample: Some(1),
    },
    Kernel {
        name: "pairs that stay",
        file: "gemm.py",
        settings: STAYING,
        schedule: "producer_consumer",
        decisions: &[(PAIRS, true)],
        has: &["resident", "for round in", "multicast"],
        sample: Some(2),
    },
    Kernel {
        name: "consumers that overlap",
        file: "gemm.py",
        settings: &[
            ("M", "128"),
            ("N", "128"),
            ("K", "320"),
            ("block_K", "64"),
            ("num_stages", "2"),
            ("threads", "256"),
            ("dtype", "bfloat16"),
            ("trans_B", "True"),
        ],
        schedule: "producer_consumer",
        decisions: &[(OVERLAP, true)],
        has: &["warp_group 0, 1 {", "wait wgmma(1)"],
        sample: None,
    },
    Kernel {
        name: "pairs that overlap",
        file: "gemm.py",
        settings: &[
            ("M", "128"),
            ("N", "128"),
            ("K", "448"),
            ("block_M", "64"),
            ("block_K", "64"),
            ("num_stages", "3"),
            ("dtype", "bfloat16"),
            ("trans_B", "True"),
        ],
        schedule: "producer_consumer",
        decisions: &[(PAIRS, true), (OVERLAP, true)],
        has: &["multicast", "wait wgmma(1)"],
        sample: None,
    },
    // Nine versions leave room for half of the columns of C.
    Kernel {
        name: "results in parts",
        file: "gemm.py",
        settings: &[
            ("M", "64"),
            ("N", "128"),
            ("K", "1216"),
            ("block_M", "64"),
            ("block_K", "64"),
            ("num_stages", "9"),
            ("dtype", "bfloat16"),
            ("trans_B", "True"),
        ],
        schedule: "producer_consumer",
        decisions: &[(SPLIT_K, false)],
        has: &["C_stage: shared bfloat16[64, 64]", "wait tma_store(0) read"],
        sample: None,
    },
    Kernel {
        name: "turns",
        file: "attention_fwd.py",
        settings: &[
            ("heads", "1"),
            ("seq_len", "320"),
            ("block_M", "128"),
            ("num_stages", "2"),
            ("threads", "256"),
        ],
        schedule: "producer_consumer",
        decisions: &[],
        has: &["turn[0]", "turn[1]"],
        sample: Some(1),
    },
    Kernel {
        name: "scaled sums",
        file: "fp8_gemm_blockwise.py",
        settings: &[("M", "256"), ("N", "128"), ("K", "640"), ("block_M", "256")],
        schedule: "producer_consumer",
        decisions: &[],
        has: &["tma.1x256"],
        sample: None,
    },
    Kernel {
        name: "no producer",
        file: "gemm.py",
        settings: &[
            ("M", "128"),
            ("N", "128"),
            ("K", "448"),
            ("block_K", "64"),
            ("dtype", "bfloat16"),
        ],
        schedule: "in_flight",
        decisions: &[],
        has: &["wait cp_async(1)"],
        sample: None,
    },
];

/// A fault that is none.
#[derive(Debug)]
struct Harmless {
    kernels: &'static [&'static str],
    faults: &'static [Fault],
    /// The statement, and which it is of those with this text.
    text: &'static str,
    nth: usize,
    because: &'static str,
    /// Whether the checker finds it all the same: a rule is broken, and nothing comes of it.
    breaks_a_rule: bool,
}

/// Where products overlap, the last tile is handed back behind the loop.
const LAST_TILE: &str = "nobody brings another tile to where the last one was";

const HARMLESS: &[Harmless] = &[
    Harmless {
        kernels: &["turns"],
        faults: &[Fault::NoWait, Fault::WaitForNext],
        text: "mbarrier_wait turn[0] parity=1",
        nth: 0,
        because: "the first turn is free: no phase of either barrier has begun to be waited for",
        breaks_a_rule: false,
    },
    Harmless {
        kernels: &["turns"],
        faults: &[Fault::NoArrival, Fault::ArrivalAtNext],
        text: "mbarrier_arrive turn[0] warp",
        nth: 1,
        because: "behind the loop nobody waits for a turn any more",
        breaks_a_rule: false,
    },
    Harmless {
        kernels: &[
            "blocks that stay",
            "pairs that stay",
            "consumers that overlap",
            "pairs that overlap",
            "results in parts",
        ],
        faults: &[Fault::NoFence],
        text: "fence wgmma",
        nth: 1,
        because: "products of one shape that add to the same registers are in order, and nothing \
                  else touches these since the product before",
        breaks_a_rule: false,
    },
    Harmless {
        kernels: &["consumers that overlap", "results in parts"],
        faults: &[Fault::NoArrival],
        text: "mbarrier_arrive A_shared_empty[0] warp",
        nth: 0,
        because: LAST_TILE,
        breaks_a_rule: false,
    },
    Harmless {
        kernels: &["consumers that overlap", "results in parts"],
        faults: &[Fault::ArrivalAtNext],
        text: "mbarrier_arrive A_shared_empty[0] warp",
        nth: 0,
        because: LAST_TILE,
        breaks_a_rule: true,
    },
    Harmless {
        kernels: &["pairs that overlap"],
        faults: &[Fault::NoArrival, Fault::ArrivalInOwnBlock],
        text: "mbarrier_arrive A_shared_empty[0] warp cluster",
        nth: 0,
        because: LAST_TILE,
        breaks_a_rule: false,
    },
    Harmless {
        kernels: &["pairs that overlap"],
        faults: &[Fault::ArrivalAtNext],
        text: "mbarrier_arrive A_shared_empty[0] warp cluster",
        nth: 0,
        because: LAST_TILE,
        breaks_a_rule: true,
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    // Waits for phases.
    NoWait,
    OtherParity,
    WaitForNext,
    // Arrivals.
    NoArrival,
    ArrivalAtNext,
    ArrivalOfLanes,
    ArrivalInOwnBlock,
    // Bytes.
    MoreBytes,
    FewerBytes,
    NothingExpected,
    ExpectedWithoutArrival,
    ExpectedAtNext,
    // Counts of arrival barriers.
    CountsMore,
    CountsFewer,
    LastCountsMore,
    LastCountsFewer,
    // Bulk loads.
    LoadTellsNext,
    LoadToNextVersion,
    LoadToOwnBlock,
    // Fences and groups.
    NoFence,
    NoCommit,
    NoGroupWait,
    LooserGroupWait,
    // Meetings.
    NoClusterBarrier,
    NoBarrier,
    NoWarpBarrier,
}

/// A function with a fault.
struct Planted {
    kernel: usize,
    fault: Fault,
    /// The statement as it was, and how many with this text come before it.
    text: String,
    nth: usize,
    func: Func,
}

/// A kernel with what it computes when nothing is wrong.
struct Subject {
    lowered: Func,
    inputs: Args,
    /// By way of running it.
    right: Vec<Args>,
}

#[test]
fn every_planted_fault_is_found_by_checker_and_simulator() {
    let subjects = in_parallel(KERNELS, |kernel| {
        let subject = Subject::of(kernel);
        subject.unwrap_or_else(|e| panic!("{}: {}", kernel.name, e.message().unwrap_or_default()))
    });
    let mut planted = Vec::new();
    for (at, subject) in subjects.iter().enumerate() {
        planted.extend(faults(at, &subject.lowered));
    }
    let found = in_parallel(&planted, |p| {
        let hazards = hazard::check(&p.func, TARGET).hazards;
        (
            !hazards.is_empty(),
            subjects[p.kernel].shows(&p.func, KERNELS[p.kernel].sample),
        )
    });

    let mut table: BTreeMap<Fault, [usize; 3]> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut used = vec![false; HARMLESS.len()];
    for (p, by) in planted.iter().zip(&found) {
        let name = KERNELS[p.kernel].name;
        let harmless = HARMLESS.iter().position(|h| {
            let here = h.kernels.contains(&name) && (h.text, h.nth) == (&p.text, p.nth);
            here && h.faults.contains(&p.fault)
        });
        let [checker, simulator, none] = table.entry(p.fault).or_default();
        *checker += usize::from(by.0);
        *simulator += usize::from(by.1);
        *none += usize::from(*by == (false, false));
        if let Some(at) = harmless {
            used[at] = true;
            println!(
                "{:?} of `{}` in {name}: {}",
                p.fault, p.text, HARMLESS[at].because
            );
        }
        let rule = harmless.is_some_and(|at| HARMLESS[at].breaks_a_rule);
        let who = match (by, harmless.is_some()) {
            ((true, true), false) => continue,
            ((said, false), true) if *said == rule => continue,
            ((false, false), false) => "nobody finds",
            ((false, false), true) => "the checker no longer finds",
            ((true, false), _) => "the simulator misses",
            ((false, true), _) => "the checker misses",
            ((true, true), true) => "not harmless:",
        };
        let Planted {
            fault, text, nth, ..
        } = p;
        wrong.push(format!("{who} {fault:?} of `{text}` #{nth} in {name}"));
    }
    let unused = used.iter().zip(HARMLESS).filter(|(used, _)| !**used);
    wrong.extend(unused.map(|(_, h)| format!("nothing is {h:?}")));

    println!("{:24} checker simulator harmless", "fault");
    for (fault, [checker, simulator, none]) in &table {
        println!(
            "{:24} {checker:7} {simulator:9} {none:8}",
            format!("{fault:?}")
        );
    }
    let total = |column: usize| table.values().map(|row| row[column]).sum::<usize>();
    println!("{:24} {:7} {:9} {:8}", "all", total(0), total(1), total(2));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(total(0) >= 200 && total(1) >= 200);
}

impl Subject {
    fn of(kernel: &Kernel) -> Result<Subject, Failed> {
        let (mut func, sources) = stage::staged(kernel.file, None, kernel.settings)?;
        ask_for_schedule(&mut func, kernel.schedule);
        for (decision, on) in kernel.decisions {
            decision.ask(&mut func, *on);
        }
        let lowered = lowering::lower(&func, TARGET, Until::Level(Level::Device))
            .and_then(lowering::Lowered::checked)
            .map_err(|refused| {
                let errors: Vec<_> = refused.errors.iter().cloned().collect();
                stage::rendered(&errors, &sources)
            })?
            .func;
        let printed = lowered.to_string();
        if let Some(missing) = kernel.has.iter().find(|part| !printed.contains(**part)) {
            return Err(format!("{}: no {missing} in\n{printed}", kernel.name).into());
        }
        let inputs = sim::make_inputs(&func, &InputSpec::default()).map_err(|e| e.to_string())?;
        let mut reference = inputs.try_clone(&func).map_err(|e| e.to_string())?;
        sim::run(&func, &mut reference, &RunOptions::default()).map_err(|e| e.to_string())?;
        let mut subject = Subject {
            lowered,
            inputs,
            right: Vec::new(),
        };
        let compared = match kernel.sample {
            Some(_) => Compared::Sample,
            None => Compared::All,
        };
        for way in ways(kernel.sample) {
            let Some(args) = subject.clean(&subject.lowered, &way) else {
                return Err(format!("{}: wrong as it stands, {way:?}", kernel.name).into());
            };
            if let Some(d) = verdict(&func, &args, &reference, compared).diagnostic(&func) {
                return Err(stage::rendered(&[d], &sources));
            }
            subject.right.push(args);
        }
        Ok(subject)
    }

    /// Whether the simulator finds something, or computes something else.
    fn shows(&self, func: &Func, sample: Option<u64>) -> bool {
        ways(sample).iter().zip(&self.right).any(|(way, right)| {
            self.clean(func, way)
                .is_none_or(|args| bits(&args) != bits(right))
        })
    }

    /// What it computes, unless the simulator finds something.
    fn clean(&self, func: &Func, way: &SimtOptions<'_>) -> Option<Args> {
        let mut args = self.inputs.try_clone(&self.lowered).ok()?;
        let ran = simt::run(func, TARGET, &mut args, way);
        ran.is_ok_and(|report| report.is_clean()).then_some(args)
    }
}

fn bits(args: &Args) -> Vec<&[u8]> {
    let names = args.iter().map(|(name, _)| name);
    let tensors = names.filter_map(|name| args.tensor(name));
    tensors.map(|t| t.bytes()).collect()
}

/// Late and early, whole runs of warps and single statements; those first that show most.
fn ways(sample: Option<u64>) -> Vec<SimtOptions<'static>> {
    let way = |(seed, dma, interleaving)| SimtOptions {
        seed,
        interleaving,
        landing: Landing {
            dma,
            ..Landing::default()
        },
        first_only: true,
        step_limit: 1_000_000,
        threads: 1,
        sample,
        ..SimtOptions::default()
    };
    [
        (0, When::Late, Interleaving::UntilBlocked),
        (1, When::Early, Interleaving::EveryStatement),
        (2, When::Early, Interleaving::UntilBlocked),
        (3, When::Late, Interleaving::EveryStatement),
    ]
    .map(way)
    .into()
}

/// The function with each fault that it can have.
fn faults(kernel: usize, func: &Func) -> Vec<Planted> {
    let mut list = Vec::new();
    let mut plant = |fault: Fault, text: String, func: Func| {
        verify::verify(&func).unwrap_or_else(|e| panic!("{fault:?} of `{text}`: {e:?}"));
        let same = |p: &&Planted| p.fault == fault && p.text == text;
        let nth = list.iter().filter(same).count();
        list.push(Planted {
            kernel,
            fault,
            text,
            nth,
            func,
        });
    };
    for (at, own) in func.kernels.iter().enumerate() {
        let mut number = 0;
        walk_stmts(&own.body, &mut |stmt| {
            for (fault, instead) in faults_of(func, stmt) {
                let mut faulty = func.clone();
                let there = replace(&mut faulty.kernels[at].body, &mut { number }, &instead);
                assert!(there, "statements are numbered as they are walked over");
                plant(fault, first_line(func, stmt), faulty);
            }
            number += 1;
        });
    }
    for (buffer, data) in func.buffers.iter() {
        let BufferOrigin::Barriers(counts) = &data.origin else {
            continue;
        };
        let last = counts.len() - 1;
        for (fault, from, by) in [
            (Fault::CountsMore, 0, 1),
            (Fault::CountsFewer, 0, -1),
            (Fault::LastCountsMore, last, 1),
            (Fault::LastCountsFewer, last, -1),
        ] {
            // A barrier counts at least one.
            if counts[from..].contains(&1) && by < 0 {
                continue;
            }
            let mut other = counts.clone();
            for count in &mut other[from..] {
                *count = count.saturating_add_signed(by);
            }
            let mut faulty = func.clone();
            faulty.buffers[buffer].origin = BufferOrigin::Barriers(other);
            plant(fault, data.name.clone(), faulty);
        }
    }
    list
}

/// What a statement becomes by each fault that it can have; none where it goes.
fn faults_of(func: &Func, stmt: &Stmt) -> Vec<(Fault, Option<StmtKind>)> {
    match &stmt.kind {
        StmtKind::Thread(op) => {
            let faults = faults_of_thread_op(func, op).into_iter();
            let whole = |(fault, op): (Fault, Option<ThreadOp>)| (fault, op.map(StmtKind::Thread));
            faults.map(whole).collect()
        }
        StmtKind::Micro(op) if op.kind == MicroKind::TmaLoad => {
            let faults = faults_of_load(func, op).into_iter();
            faults
                .map(|(fault, op)| (fault, Some(StmtKind::Micro(op))))
                .collect()
        }
        StmtKind::Device(op) => {
            let faults = faults_of_device_op(op).into_iter();
            let whole = |(fault, op): (Fault, Option<DeviceOp>)| (fault, op.map(StmtKind::Device));
            faults.map(whole).collect()
        }
        _ => Vec::new(),
    }
}

fn faults_of_thread_op(func: &Func, op: &ThreadOp) -> Vec<(Fault, Option<ThreadOp>)> {
    let next = |barrier: Buffer, index: &Expr| {
        let shape = func.buffers[barrier].const_shape()?;
        after(index, shape.iter().product())
    };
    let mut list = Vec::new();
    match op.clone() {
        ThreadOp::BarrierWait {
            barrier,
            index,
            parity,
        } => {
            let wait = |index: Expr, parity: Expr| {
                Some(ThreadOp::BarrierWait {
                    barrier,
                    index,
                    parity,
                })
            };
            let other = Expr::int(1, parity.dtype()) - &parity;
            list.push((Fault::NoWait, None));
            list.push((Fault::OtherParity, wait(index.clone(), other)));
            let next = next(barrier, &index);
            list.extend(next.map(|next| (Fault::WaitForNext, wait(next, parity))));
        }
        ThreadOp::BarrierArrive {
            barrier,
            index,
            warp,
            at,
        } => {
            let arrive = |index: &Expr, warp: bool, at: &ArriveAt| {
                Some(ThreadOp::BarrierArrive {
                    barrier,
                    index: index.clone(),
                    warp,
                    at: at.clone(),
                })
            };
            list.push((Fault::NoArrival, None));
            if let Some(next) = next(barrier, &index) {
                list.push((Fault::ArrivalAtNext, arrive(&next, warp, &at)));
            }
            if warp {
                list.push((Fault::ArrivalOfLanes, arrive(&index, false, &at)));
            }
            if at.reaches_others() {
                let own = arrive(&index, warp, &ArriveAt::Own);
                list.push((Fault::ArrivalInOwnBlock, own));
            }
        }
        ThreadOp::BarrierExpect {
            barrier,
            index,
            bytes,
            arrive,
        } => {
            let expect = |index: &Expr, bytes: Expr, arrive: bool| {
                Some(ThreadOp::BarrierExpect {
                    barrier,
                    index: index.clone(),
                    bytes,
                    arrive,
                })
            };
            list.push((Fault::MoreBytes, expect(&index, &bytes + 16, arrive)));
            list.push((Fault::FewerBytes, expect(&index, &bytes - 16, arrive)));
            list.push((Fault::NothingExpected, None));
            if arrive {
                let silent = expect(&index, bytes.clone(), false);
                list.push((Fault::ExpectedWithoutArrival, silent));
            }
            if let Some(next) = next(barrier, &index) {
                list.push((Fault::ExpectedAtNext, expect(&next, bytes, arrive)));
            }
        }
        ThreadOp::SyncCluster => list.push((Fault::NoClusterBarrier, None)),
        ThreadOp::SyncThreads { .. } => list.push((Fault::NoBarrier, None)),
        ThreadOp::SyncWarp => list.push((Fault::NoWarpBarrier, None)),
        _ => {}
    }
    list
}

fn faults_of_load(func: &Func, load: &MicroOp) -> Vec<(Fault, MicroOp)> {
    let mut list = Vec::new();
    if let Some(slot) = &load.dest.slot {
        let versions = func.buffers[load.dest.region.buffer].versions;
        if let Some(next) = after(slot, versions.into()) {
            let mut other = load.clone();
            other.dest.slot = Some(next);
            list.push((Fault::LoadToNextVersion, other));
        }
    }
    if let Some(arrival) = &load.arrives {
        let told = |arrival: Arrival| MicroOp {
            arrives: Some(arrival),
            ..load.clone()
        };
        let shape = func.buffers[arrival.barrier].const_shape();
        let barriers = shape.map_or(1, |shape| shape.iter().product());
        if let Some(index) = after(&arrival.index, barriers) {
            let next = Arrival {
                index,
                ..arrival.clone()
            };
            list.push((Fault::LoadTellsNext, told(next)));
        }
        if arrival.multicast.is_some() {
            let own = Arrival {
                multicast: None,
                ..arrival.clone()
            };
            list.push((Fault::LoadToOwnBlock, told(own)));
        }
    }
    list
}

fn faults_of_device_op(op: &DeviceOp) -> Vec<(Fault, Option<DeviceOp>)> {
    match *op {
        DeviceOp::Wait { counter, at_most } => {
            let at_most = at_most + 1;
            let looser = DeviceOp::Wait { counter, at_most };
            vec![
                (Fault::NoGroupWait, None),
                (Fault::LooserGroupWait, Some(looser)),
            ]
        }
        DeviceOp::WaitRead { at_most } => {
            let at_most = at_most + 1;
            let looser = DeviceOp::WaitRead { at_most };
            vec![
                (Fault::NoGroupWait, None),
                (Fault::LooserGroupWait, Some(looser)),
            ]
        }
        DeviceOp::Commit(_) => vec![(Fault::NoCommit, None)],
        DeviceOp::Fence(FenceKind::Wgmma | FenceKind::AsyncProxy) => vec![(Fault::NoFence, None)],
        DeviceOp::Barrier(_) => vec![(Fault::NoBarrier, None)],
        _ => Vec::new(),
    }
}

/// The index behind this one, of so many; none where there is no other.
fn after(index: &Expr, of: i64) -> Option<Expr> {
    (of > 1).then(|| (index + 1).floor_mod(of))
}

/// Puts something in the place of a statement, by its number as they are walked over.
fn replace(block: &mut Block, left: &mut usize, instead: &Option<StmtKind>) -> bool {
    for at in 0..block.len() {
        if *left == 0 {
            match instead {
                Some(kind) => block[at].kind = kind.clone(),
                None => drop(block.remove(at)),
            }
            return true;
        }
        *left -= 1;
        for child in child_blocks_mut(&mut block[at]) {
            if replace(child, left, instead) {
                return true;
            }
        }
    }
    false
}

fn first_line(func: &Func, stmt: &Stmt) -> String {
    let text = text::print_stmt(func, stmt);
    text.lines().next().unwrap_or_default().trim().to_string()
}

/// What comes of each, in their order.
fn in_parallel<T: Sync, R: Send>(list: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = list.get(at) else {
                        return;
                    };
                    let result = work(item);
                    done.lock().expect("no worker panics").insert(at, result);
                }
            });
        }
    });
    let done = done.into_inner().expect("no worker panics");
    done.into_values().collect()
}
