//! Random orders of a gemm's micro-ops: what the schedule engine derives is proved by the hazard
//! checker and computes the exact product in the simulator.
//!
//! A tile of A and one of B come in halves: four copies to shared memory, four reads into
//! registers, four products, in random places and at random distances. The engine derives
//! versions, waits and barriers, and a small emitter of this file writes the schedule down as
//! device IR, so nothing is shared with the pass that does so in the compiler. Two waves multiply;
//! each reads the rows of A that the other has copied, so that no barrier is for nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tilewright::ir::{Counter, DType, Func, Scalar, SourceMap, Target, text, verify};
use tilewright::schedule::footprint::Meeting;
use tilewright::schedule::hazard;
use tilewright::schedule::order::{
    Completion, Op, Order, OrderError, Resource, Schedule, Section, Space, Step, Tail, Touch,
    derive,
};
use tilewright::sim::simt::{self, Landing, SimtOptions};
use tilewright::sim::{Arg, Args, HostTensor};

/// Rows of A and of B; half of them are one half tile.
const N: usize = 64;
/// Columns of a tile.
const TILE: usize = 32;
/// The most tiles.
const TRIPS: usize = 5;

/// The machine that an order is for.
#[derive(Clone, Copy, Debug)]
struct Machine {
    target: Target,
    copies: Counter,
    /// What counts the reads of shared memory, where that is left to the program.
    reads: Option<Counter>,
    lag: u32,
    tail: Tail,
}

impl Machine {
    /// Whether the program is the one of AMD's matrix instructions.
    fn is_amd(&self) -> bool {
        self.target == Target::Gfx950
    }
}

const AMPERE: Machine = Machine {
    target: Target::Sm80,
    copies: Counter::CpAsync,
    reads: None,
    lag: 0,
    tail: Tail::Guard,
};
const CDNA: Machine = Machine {
    target: Target::Gfx950,
    copies: Counter::Vmcnt,
    reads: Some(Counter::Lgkmcnt),
    lag: 0,
    tail: Tail::Peel,
};

/// A random order, and whether each copy is made in four instructions instead of one.
#[derive(Clone, Debug)]
struct Sample {
    order: Order,
    split: [bool; 4],
    trips: [usize; 4],
}

fn samples(machine: Machine) -> impl Strategy<Value = Sample> {
    let distances = proptest::array::uniform4(1u32..4);
    let ahead = proptest::array::uniform4(prop_oneof![4 => Just(0u32), 1 => Just(1u32)]);
    let keys = proptest::collection::vec(any::<u32>(), 12);
    let split = proptest::array::uniform4(any::<bool>());
    let trips = proptest::array::uniform4(0..=TRIPS);
    (distances, ahead, keys, split, trips).prop_map(
        move |(distances, ahead, keys, split, trips)| Sample {
            order: order(machine, distances, ahead, &keys, split),
            split,
            trips,
        },
    )
}

/// Ops by program order: copies 0..4 (A0, A1, B0, B1), reads 4..8, products 8..12. Resources:
/// shared halves 0..4, their registers 4..8, accumulators 8..12.
fn order(
    machine: Machine,
    distances: [u32; 4],
    ahead: [u32; 4],
    keys: &[u32],
    split: [bool; 4],
) -> Order {
    let op = |program, distance, completion, touches: &[(usize, bool)]| Op {
        distance,
        completion,
        program,
        touches: touches
            .iter()
            .map(|&(resource, write)| Touch { resource, write })
            .collect(),
    };
    let mut ops = Vec::new();
    for half in 0..4 {
        let copy = Completion::Counted {
            counter: machine.copies,
            instructions: if split[half] { 4 } else { 1 },
        };
        ops.push(op(half, distances[half], copy, &[(half, true)]));
        let read = match machine.reads {
            None => Completion::Sync,
            Some(counter) => Completion::Counted {
                counter,
                instructions: if half < 2 { 1 } else { 2 },
            },
        };
        let touches = [(half, false), (4 + half, true)];
        ops.push(op(4 + half, ahead[half], read, &touches));
        let (a, b) = (half / 2, 2 + half % 2);
        let touches = [(4 + a, false), (4 + b, false), (8 + half, true)];
        ops.push(op(8 + half, 0, Completion::Sync, &touches));
    }
    // Places by program order. Products come after the reads of their own iteration, and before
    // those of the next, which overwrite their registers.
    let mut places = [0u64; 12];
    for (op, key) in ops.iter().zip(keys) {
        places[op.program] = u64::from(*key);
    }
    for product in 8..12 {
        for read in [4 + (product - 8) / 2, 6 + (product - 8) % 2] {
            if ahead[read - 4] == 0 {
                places[product] = places[product].max(places[read] + 1);
            }
        }
    }
    for read in (4..8).filter(|r| ahead[r - 4] > 0) {
        for product in 8..12 {
            let uses = [4 + (product - 8) / 2, 6 + (product - 8) % 2];
            if uses.contains(&read) {
                places[read] = places[read].max(places[product] + 1);
            }
        }
    }
    ops.sort_by_key(|o| places[o.program]);
    let resource = |space, private| Resource { space, private };
    let mut resources = vec![resource(Space::Shared, true); 4];
    resources.extend([resource(Space::Register, true); 4]);
    resources.extend([resource(Space::Register, false); 4]);
    Order {
        ops,
        resources,
        barriers: Vec::new(),
        lag: machine.lag,
        tail: machine.tail,
        trip: None,
        spare: 0,
    }
}

/// Writes a schedule down as device IR.
struct Emitter<'a> {
    machine: Machine,
    sample: &'a Sample,
    schedule: &'a Schedule,
    out: String,
}

impl Emitter<'_> {
    fn program(mut self) -> String {
        let (threads, warp, a, b, c) = match self.machine.target {
            Target::Sm80 => (64, 32, 16, 32, 16),
            _ => (128, 64, 8, 16, 8),
        };
        let k = TILE * TRIPS;
        let _ = write!(
            self.out,
            "func @order level=device {{
               scalar n: int32
               param A: bfloat16[{N}, {k}]
               param B: bfloat16[{N}, {k}]
               output C: float32[{N}, {N}]
               kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{\n"
        );
        for (half, name) in ["A0", "A1", "B0", "B1"].iter().enumerate() {
            let versions = self.schedule.versions[half];
            let several = match versions {
                1 => String::new(),
                n => format!(" versions={n}"),
            };
            self.line(&format!("alloc {name}: shared bfloat16[32, 32]{several}"));
            let registers = if half < 2 { a } else { b };
            let name = name.to_lowercase();
            self.line(&format!("alloc {name}: local bfloat16[{registers}]"));
        }
        for product in 0..4 {
            self.line(&format!("alloc c{product}: local float32[{c}]"));
        }
        self.line("assume n >= 0");
        self.line(&format!("let wave: int32 = tx // {warp}"));
        self.line(&format!("let lane: int32 = tx % {warp}"));
        self.line(&format!("for s in unroll(0, {c}) {{"));
        for product in 0..4 {
            self.line(&format!("c{product}[s] = 0.0"));
        }
        self.line("}");
        if self.machine.lag == 1 {
            self.line("barrier cond(wave == 1)");
        }
        self.pieces();
        if self.machine.lag == 1 {
            self.line("barrier cond(wave == 0)");
        }
        self.results(c);
        self.out += "}\n}\n";
        self.out
    }

    fn line(&mut self, text: &str) {
        self.out += text;
        self.out.push('\n');
    }

    fn pieces(&mut self) {
        let schedule = self.schedule;
        let depth = schedule.depth as usize;
        for (at, section) in schedule.prologue.iter().enumerate() {
            self.section(section, &|distance| {
                let iteration = at + distance - depth;
                let guard = format!("n > {iteration}");
                (iteration.to_string(), Some(guard))
            });
        }
        let guarded = self.machine.tail == Tail::Guard;
        let stop = if guarded {
            "n".to_string()
        } else {
            format!("n - {depth}")
        };
        self.line(&format!("for it in serial(0, {stop}) {{"));
        self.section(&schedule.steady, &|distance| {
            let iteration = format!("(it + {distance})");
            let guard = (guarded && distance > 0).then(|| format!("{iteration} < n"));
            (iteration, guard)
        });
        self.line("}");
        for (at, section) in schedule.epilogue.iter().enumerate() {
            let back = depth - at;
            self.line(&format!("if n >= {back} {{"));
            self.section(section, &|distance| {
                (format!("(n - {back} + {distance})"), None)
            });
            self.line("}");
        }
        for step in &schedule.drain {
            self.step(*step);
        }
    }

    /// The steps of a section; `when` gives the iteration of an op by its distance, and its guard.
    fn section(&mut self, section: &Section, when: &dyn Fn(usize) -> (String, Option<String>)) {
        for step in &section.steps {
            let Step::Run(op) = *step else {
                self.step(*step);
                continue;
            };
            let op = &self.sample.order.ops[op];
            let (iteration, guard) = when(op.distance as usize);
            let program = op.program;
            if let Some(guard) = &guard {
                self.line(&format!("if {guard} {{"));
            }
            self.op(program, &iteration);
            if guard.is_some() {
                self.line("}");
            }
        }
    }

    fn step(&mut self, step: Step) {
        let text = match step {
            Step::Run(_) => return,
            Step::Commit(counter) => format!("commit {}", counter.name()),
            Step::Wait { counter, at_most } => format!("wait {}({at_most})", counter.name()),
            Step::Barrier if self.machine.target.machine().barrier.bare => {
                "barrier bare".to_string()
            }
            Step::Barrier => "barrier block".to_string(),
            Step::WarpSync => "sync_warp".to_string(),
        };
        self.line(&text);
    }

    fn op(&mut self, program: usize, iteration: &str) {
        let half = program % 4;
        let shared = ["A0", "A1", "B0", "B1"][half];
        let registers = shared.to_lowercase();
        let slot = match self.schedule.versions[half] {
            1 => String::new(),
            n => format!(" slot=({iteration} % {n})"),
        };
        let amd = self.machine.is_amd();
        let text = match program {
            0..4 => {
                let (tensor, first) = (if half < 2 { "A" } else { "B" }, half % 2 * 32);
                // Lanes stand side by side in shared memory, whatever an instruction carries.
                let (rounds, width) = match (amd, self.sample.split[half]) {
                    (true, true) => (4, 2),
                    (true, false) => (1, 8),
                    (false, true) => (4, 4),
                    (false, false) => (2, 8),
                };
                let lanes = TILE / width;
                let (row, column) = (
                    format!("r * {} + tx // {lanes}", TILE / rounds),
                    format!("tx % {lanes} * {width}"),
                );
                let (inst, counter) = if amd {
                    ("buffer_load_lds", "vmcnt")
                } else {
                    ("cp.async", "cp_async")
                };
                format!(
                    "g2s for r < {rounds} do {tensor}[{first} +: 32, {iteration} * 32 +: 32] \
                     at [{first} + {row}, {iteration} * 32 + {column}] \
                     -> {shared}[0 +: 32, 0 +: 32]{slot} at [{row}, {column}] \
                     inst=\"{inst}\" width={width} counter={counter}"
                )
            }
            4..8 => {
                let (axes, place, register, width) = match (amd, half < 2) {
                    (true, true) => (
                        "",
                        "(1 - wave) * 16 + lane % 16, lane // 16 * 8",
                        "0",
                        "8 counter=lgkmcnt",
                    ),
                    (true, false) => (
                        "for m < 2 do ",
                        "m * 16 + lane % 16, lane // 16 * 8",
                        "m * 8",
                        "8 counter=lgkmcnt",
                    ),
                    (false, true) => (
                        "for q < 2, h < 2, r < 2 do ",
                        "(1 - wave) * 16 + lane // 4 + r * 8, q * 16 + h * 8 + lane % 4 * 2",
                        "q * 8 + h * 4 + r * 2",
                        "2",
                    ),
                    (false, false) => (
                        "for m < 4, q < 2, h < 2 do ",
                        "m * 8 + lane // 4, q * 16 + h * 8 + lane % 4 * 2",
                        "m * 8 + q * 4 + h * 2",
                        "2",
                    ),
                };
                let size = self.registers(half);
                format!(
                    "s2r {axes}{shared}[0 +: 32, 0 +: 32]{slot} at [{place}] \
                     -> {registers}[0 +: {size}] at [{register}] inst=\"load\" width={width}"
                )
            }
            _ => {
                let (a, b) = (format!("a{}", half / 2), format!("b{}", half % 2));
                let (sa, sb) = (self.registers(0), self.registers(2));
                if amd {
                    format!(
                        "mma for m < 2 do {a}[0 +: {sa}] at [0], {b}[0 +: {sb}] at [m * 8] \
                         -> c{half}[0 +: 8] at [m * 4] \
                         inst=\"mfma.16x16x32.bfloat16.float32\" width=1"
                    )
                } else {
                    format!(
                        "mma for q < 2, m < 4 do {a}[0 +: {sa}] at [q * 8], \
                         {b}[0 +: {sb}] at [m * 8 + q * 4] -> c{half}[0 +: 16] at [m * 4] \
                         inst=\"mma.16x8x16.bfloat16.float32\" width=1"
                    )
                }
            }
        };
        self.line(&text);
    }

    fn registers(&self, half: usize) -> usize {
        match (self.machine.is_amd(), half < 2) {
            (true, true) => 8,
            (false, false) => 32,
            _ => 16,
        }
    }

    fn results(&mut self, c: usize) {
        self.line(&format!("for s in unroll(0, {c}) {{"));
        let (row, column) = if self.machine.is_amd() {
            ("lane // 16 * 4 + s % 4", "s // 4 * 16 + lane % 16")
        } else {
            (
                "lane // 4 + s // 2 % 2 * 8",
                "s // 4 * 8 + lane % 4 * 2 + s % 2",
            )
        };
        self.line(&format!("let row: int32 = (1 - wave) * 16 + {row}"));
        self.line(&format!("let col: int32 = {column}"));
        for product in 0..4 {
            let (i, j) = (product / 2 * 32, product % 2 * 32);
            self.line(&format!("C[{i} + row, {j} + col] = c{product}[s]"));
        }
        self.line("}");
    }
}

fn parse(source: &str) -> Result<Func, TestCaseError> {
    let mut sources = SourceMap::new();
    let file = sources.add("order.tw", source);
    let said = |d: &tilewright::ir::Diagnostic| d.render(&sources, false);
    let func = text::parse(source, file)
        .map_err(|d| TestCaseError::fail(d.iter().map(said).collect::<String>()))?;
    verify::verify(&func)
        .map_err(|d| TestCaseError::fail(d.iter().map(said).collect::<String>()))?;
    Ok(func)
}

/// Small integers, which the formats hold and multiply exactly.
fn values(seed: usize) -> Vec<f64> {
    (0..N * TILE * TRIPS)
        .map(|at| ((at * 7 + at / 32 * 3 + at / 160 * 5 + seed) % 5) as f64 - 2.0)
        .collect()
}

/// `A · Bᵀ` over the first tiles.
fn product(a: &[f64], b: &[f64], trips: usize) -> Vec<f64> {
    let k = TILE * TRIPS;
    let dot = |i: usize, j: usize| (0..trips * TILE).map(|x| a[i * k + x] * b[j * k + x]).sum();
    (0..N * N).map(|at| dot(at / N, at % N)).collect()
}

/// What all runs share.
struct Bench {
    tensors: [HostTensor; 2],
    expected: Vec<Vec<f64>>,
}

impl Bench {
    fn new() -> Bench {
        let (a, b) = (values(1), values(3));
        let tensor = |list: &[f64]| {
            let shape = [N, TILE * TRIPS];
            HostTensor::from_f64(DType::scalar(Scalar::BF16), &shape, list).expect("the size")
        };
        Bench {
            tensors: [tensor(&a), tensor(&b)],
            expected: (0..=TRIPS).map(|n| product(&a, &b, n)).collect(),
        }
    }

    fn multiplies(&self, machine: Machine, sample: &Sample) -> Result<(), TestCaseError> {
        let across = |_: usize, _: usize, _: usize, _: usize| Meeting::AcrossWarps;
        let schedule = match derive(&sample.order, &across) {
            Ok(schedule) => schedule,
            Err(OrderError::RegisterVersions { .. } | OrderError::Breaks { .. }) => {
                return Err(TestCaseError::reject("not an order"));
            }
        };
        let emitter = Emitter {
            machine,
            sample,
            schedule: &schedule,
            out: String::new(),
        };
        let source = emitter.program();
        let func = parse(&source)?;
        let checked = hazard::check(&func, machine.target);
        prop_assert!(
            checked.is_clean(),
            "{:?} {:?}\n{source}",
            checked.hazards,
            checked.reasons
        );
        // Two of four modes, in which copies land early and late: the checker has looked at all of them.
        let first = sample.trips.iter().sum::<usize>() % 2;
        for (mode, landing) in Landing::ALL.into_iter().enumerate().skip(first).step_by(2) {
            let trips = sample.trips[mode];
            let options = SimtOptions {
                seed: mode as u64,
                landing,
                threads: 1,
                ..SimtOptions::default()
            };
            let [a, b] = self.tensors.clone();
            let mut args = Args::new()
                .with("n", Arg::Int(trips as i128))
                .with("A", Arg::Tensor(a))
                .with("B", Arg::Tensor(b));
            let report = simt::run(&func, machine.target, &mut args, &options)
                .map_err(|e| TestCaseError::fail(format!("{e}\n{source}")))?;
            prop_assert!(
                report.is_clean(),
                "{landing:?}, {trips} tiles: {:?}\n{source}",
                report.findings
            );
            let c = args.tensor("C").map(HostTensor::to_f64);
            prop_assert!(
                c.as_ref() == Some(&self.expected[trips]),
                "{landing:?}, {trips} tiles: a wrong product\n{source}"
            );
        }
        Ok(())
    }
}

/// So many random orders of a machine are right, and they are not all the same.
fn multiply(machine: Machine, orders: u32) {
    let bench = Bench::new();
    let config = Config {
        cases: orders,
        max_global_rejects: 100 * orders,
        failure_persistence: None,
        ..Config::default()
    };
    let seen = std::cell::RefCell::new(BTreeSet::new());
    let run = TestRunner::new(config).run(&samples(machine), |sample| {
        bench.multiplies(machine, &sample)?;
        let ops = sample.order.ops.iter();
        let key: Vec<(usize, u32)> = ops.map(|o| (o.program, o.distance)).collect();
        seen.borrow_mut().insert(key);
        Ok(())
    });
    if let Err(error) = run {
        panic!("{error}");
    }
    let different = seen.borrow().len();
    assert!(different * 10 >= orders as usize * 9, "{different} orders");
}

#[test]
fn orders_of_copies_in_groups() {
    multiply(AMPERE, 600);
}

#[test]
fn orders_of_counted_copies_and_reads() {
    multiply(CDNA, 700);
}

#[test]
fn orders_of_waves_a_barrier_apart() {
    multiply(Machine { lag: 1, ..CDNA }, 700);
}
