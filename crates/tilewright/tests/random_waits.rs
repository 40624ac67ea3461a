//! Random programs on LDS: the barriers and waits that ThreadSync and RegisterWaits derive are
//! proved by the hazard checker, and the simulator computes the same however late operations land.
//!
//! A program stores to shared memory and loads from it, with a counter and without, for its own
//! thread, across the lanes of a wave and across waves, in loops, short ones too, and under
//! conditions that are known at the call only. Without its barriers and waits it says nothing about
//! order, so all order in it is derived.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tilewright::ir::{
    BarrierKind, Block, Counter, DType, DeviceOp, Diagnostics, Func, Level, Scalar, SourceMap,
    StmtKind, Target, text, verify, visit,
};
use tilewright::schedule::{hazard, register_waits, thread_sync};
use tilewright::sim::simt::{self, Landing, SimtOptions};
use tilewright::sim::{Arg, Args, HostTensor};

const TARGET: Target = Target::Gfx942;
const WAVE: u32 = 64;
/// Threads of the block: two waves.
const THREADS: usize = 128;
/// Rows of what comes out.
const ROWS: usize = 16;
const PROGRAMS: u32 = 300;

/// One statement, or several.
#[derive(Clone, Debug)]
enum Piece {
    /// `r2s`: buffer, which registers, which place, whether it is a wide one.
    Put(u8, u8, u8, bool),
    /// `s2r`, the same.
    Get(u8, u8, u8, bool),
    /// A store without a counter: buffer, place.
    Store(u8, u8),
    /// A load without one, into row `n` of the result.
    Load(u8, u8, u8),
    /// Registers into row `n` of the result.
    Use(u8, u8),
    /// New values in registers.
    Set(u8),
    Serial(u8, Vec<Piece>),
    /// Up to so many times as the call says.
    Unknown(Vec<Piece>),
    Unrolled(u8, Vec<Piece>),
    /// Where the call says more than so many.
    If(u8, Vec<Piece>),
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let buffer = 0..2u8;
    let registers = 0..3u8;
    let place = 0..4u8;
    let row = 0..ROWS as u8;
    let leaf = prop_oneof![
        4 => (buffer.clone(), registers.clone(), place.clone(), any::<bool>())
            .prop_map(|(b, r, p, w)| Piece::Put(b, r, p, w)),
        4 => (buffer.clone(), registers.clone(), place.clone(), any::<bool>())
            .prop_map(|(b, r, p, w)| Piece::Get(b, r, p, w)),
        2 => (buffer.clone(), place.clone()).prop_map(|(b, p)| Piece::Store(b, p)),
        2 => (buffer, place, row.clone()).prop_map(|(b, p, n)| Piece::Load(b, p, n)),
        3 => (registers.clone(), row).prop_map(|(r, n)| Piece::Use(r, n)),
        1 => registers.prop_map(Piece::Set),
    ];
    let block = leaf.prop_recursive(2, 12, 4, |inner| {
        let body = proptest::collection::vec(inner, 1..4);
        prop_oneof![
            (1..4u8, body.clone()).prop_map(|(n, b)| Piece::Serial(n, b)),
            body.clone().prop_map(Piece::Unknown),
            (1..4u8, body.clone()).prop_map(|(n, b)| Piece::Unrolled(n, b)),
            (0..3u8, body).prop_map(|(n, b)| Piece::If(n, b)),
        ]
    });
    proptest::collection::vec(block, 2..9)
}

struct Writer {
    out: String,
    depth: usize,
    loops: usize,
}

impl Writer {
    fn program(pieces: &[Piece]) -> String {
        let mut writer = Writer {
            out: String::new(),
            depth: 2,
            loops: 0,
        };
        for row in 0..ROWS {
            writer.line(&format!("C[{row}, tx] = 0.0"));
        }
        for registers in 0..3 {
            writer.line("for v in unroll(0, 4) {");
            writer.line(&format!(
                "  r{registers}[v] = A[tx * 4 + v] + {registers}.0"
            ));
            writer.line("}");
        }
        // All of both buffers is written before anything is read.
        for buffer in ["S", "T"] {
            writer.line("for v in unroll(0, 4) {");
            writer.line(&format!("  {buffer}[tx * 4 + v] = A[tx * 4 + v]"));
            writer.line("}");
        }
        writer.block(pieces);
        format!(
            "func @f level=loop {{
  scalar n: int32
  param A: float32[512]
  output C: float32[{ROWS}, {THREADS}]
  kernel grid(bx: 1) threads(tx: {THREADS}, ty: 1, tz: 1) {{
    alloc S: shared float32[512]
    alloc T: shared float32[512]
    alloc r0: local float32[4]
    alloc r1: local float32[4]
    alloc r2: local float32[4]
{}  }}
}}
",
            writer.out
        )
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 2 * self.depth);
    }

    fn block(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            self.piece(piece);
        }
    }

    fn inside(&mut self, head: &str, pieces: &[Piece]) {
        self.line(head);
        self.depth += 1;
        self.block(pieces);
        self.depth -= 1;
        self.line("}");
    }

    fn piece(&mut self, piece: &Piece) {
        let buffer = |b: u8| if b == 0 { "S" } else { "T" };
        // The thread's own place, another lane's, another wave's, and one that moves.
        let thread = |p: u8| match p {
            0 => "tx",
            1 => "(tx // 64 * 64 + 63 - tx % 64)",
            2 => "(127 - tx)",
            _ => "((tx + 32) % 128)",
        };
        let moved = |wide: bool| match wide {
            true => ("", 4),
            false => ("for c < 4 do ", 1),
        };
        match piece {
            Piece::Put(b, r, p, wide) => {
                let (axes, width) = moved(*wide);
                let c = if *wide { "" } else { " + c" };
                let at = if *wide { "0" } else { "c" };
                self.line(&format!(
                    "r2s {axes}r{r}[0 +: 4] at [{at}] -> {}[0 +: 512] at [{} * 4{c}] \
                     inst=\"store\" width={width}",
                    buffer(*b),
                    thread(*p)
                ));
            }
            Piece::Get(b, r, p, wide) => {
                let (axes, width) = moved(*wide);
                let c = if *wide { "" } else { " + c" };
                let at = if *wide { "0" } else { "c" };
                self.line(&format!(
                    "s2r {axes}{}[0 +: 512] at [{} * 4{c}] -> r{r}[0 +: 4] at [{at}] \
                     inst=\"load\" width={width}",
                    buffer(*b),
                    thread(*p)
                ));
            }
            Piece::Store(b, p) => {
                self.line(&format!("{}[{} * 4] = A[tx * 4]", buffer(*b), thread(*p)));
            }
            Piece::Load(b, p, n) => {
                self.line(&format!("C[{n}, tx] = {}[{} * 4]", buffer(*b), thread(*p)));
            }
            Piece::Use(r, n) => self.line(&format!("C[{n}, tx] = C[{n}, tx] + r{r}[1]")),
            Piece::Set(r) => self.line(&format!("r{r}[0] = r{r}[0] + 1.0")),
            Piece::Serial(count, body) => self.repeat("serial", &count.to_string(), body),
            Piece::Unknown(body) => self.repeat("serial", "n", body),
            Piece::Unrolled(count, body) => self.repeat("unroll", &count.to_string(), body),
            Piece::If(than, body) => self.inside(&format!("if n > {than} {{"), body),
        }
    }

    fn repeat(&mut self, kind: &str, stop: &str, body: &[Piece]) {
        self.loops += 1;
        let head = format!("for k{} in {kind}(0, {stop}) {{", self.loops);
        self.inside(&head, body);
    }
}

/// The program with its barriers; no counter, no bare barrier.
fn synchronised(source: &str) -> Result<Func, TestCaseError> {
    let mut sources = SourceMap::new();
    let file = sources.add("program.tw", source);
    let said = |d: Vec<tilewright::ir::Diagnostic>| {
        let texts = d.iter().map(|d| d.render(&sources, false));
        TestCaseError::fail(texts.collect::<String>())
    };
    let mut func = text::parse(source, file).map_err(said)?;
    thread_sync(&mut func, WAVE, &mut Diagnostics::new());
    func.level = Level::Device;
    verify::verify(&func).map_err(said)?;
    Ok(func)
}

/// The same with bare barriers and the waits that they need.
fn waited(mut func: Func) -> (Func, usize) {
    for kernel in &mut func.kernels {
        make_bare(&mut kernel.body);
    }
    let waits = register_waits(&mut func);
    (func, waits)
}

fn make_bare(block: &mut Block) {
    for stmt in block {
        if let StmtKind::Device(DeviceOp::Barrier(kind)) = &mut stmt.kind {
            *kind = BarrierKind::Bare;
        }
        for child in visit::child_blocks_mut(stmt) {
            make_bare(child);
        }
    }
}

/// Loosens the nth wait.
fn loosen(block: &mut Block, nth: &mut usize) -> bool {
    for stmt in block {
        if let StmtKind::Device(DeviceOp::Wait { counter, at_most }) = &mut stmt.kind {
            assert_eq!(*counter, Counter::Lgkmcnt);
            if *nth == 0 {
                *at_most += 1;
                return true;
            }
            *nth -= 1;
        }
        for child in visit::child_blocks_mut(stmt) {
            if loosen(child, nth) {
                return true;
            }
        }
    }
    false
}

fn run(func: &Func, n: i128, landing: Landing, seed: u64) -> Result<Vec<f64>, String> {
    let values: Vec<f64> = (0..512).map(|at| f64::from(at * 7 % 31)).collect();
    let a = HostTensor::from_f64(DType::scalar(Scalar::F32), &[512], &values).expect("the size");
    let mut args = Args::new().with("n", Arg::Int(n)).with("A", Arg::Tensor(a));
    let options = SimtOptions {
        seed,
        landing,
        first_only: true,
        threads: 1,
        ..SimtOptions::default()
    };
    let report = simt::run(func, TARGET, &mut args, &options).map_err(|e| e.to_string())?;
    if !report.is_clean() {
        return Err(format!("{:?}", report.findings));
    }
    args.tensor("C")
        .map(HostTensor::to_f64)
        .ok_or_else(|| "no result".to_string())
}

/// How many programs were proved, how many waits were derived, and of how many the checker reports the loosening.
#[derive(Default)]
struct Tally {
    proved: usize,
    waits: usize,
    needed: usize,
}

fn is_right(pieces: &[Piece], tally: &mut Tally) -> Result<(), TestCaseError> {
    let source = Writer::program(pieces);
    let plain = synchronised(&source)?;
    let (func, waits) = waited(plain.clone());
    let checked = hazard::check(&func, TARGET);
    prop_assert!(
        checked.hazards.is_empty(),
        "{:?}\n{func}",
        checked.diagnostics()
    );
    for (mode, landing) in Landing::ALL.into_iter().enumerate() {
        for n in [0, 1, 3] {
            let early = run(&plain, n, Landing::default(), 0);
            let expected = early.map_err(|e| TestCaseError::fail(format!("{e}\n{plain}")))?;
            match run(&func, n, landing, mode as u64) {
                Ok(found) => prop_assert!(found == expected, "n = {n}, {landing:?}\n{func}"),
                Err(e) => prop_assert!(false, "n = {n}, {landing:?}: {e}\n{func}"),
            }
        }
    }
    tally.proved += usize::from(checked.proved);
    tally.waits += waits;
    for nth in 0..waits {
        let mut looser = func.clone();
        let mut at = nth;
        for kernel in &mut looser.kernels {
            if loosen(&mut kernel.body, &mut at) {
                break;
            }
        }
        tally.needed += usize::from(!hazard::check(&looser, TARGET).hazards.is_empty());
    }
    Ok(())
}

#[test]
fn derived_waits_are_right() {
    let config = Config {
        cases: PROGRAMS,
        failure_persistence: None,
        ..Config::default()
    };
    let tally = std::cell::RefCell::new(Tally::default());
    let outcome = TestRunner::new(config).run(&pieces(), |pieces| {
        is_right(&pieces, &mut tally.borrow_mut())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let Tally {
        proved,
        waits,
        needed,
    } = *tally.borrow();
    println!("{proved} programs proved; {waits} waits, the loosening of {needed} is reported");
    assert!(waits > PROGRAMS as usize, "only {waits} waits");
    // Random programs may have more in them than the models know, but hardly.
    assert!(needed * 100 >= waits * 98, "{needed} of {waits} are needed");
    // A loop of unknown length that stores and never waits comes to no steady state soon.
    let most = PROGRAMS as usize * 3 / 4;
    assert!(proved > most, "{proved} of {PROGRAMS} are proved");
}
