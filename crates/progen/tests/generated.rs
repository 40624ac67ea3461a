//! Random programs through the whole compiler, and tests of what makes and judges them.

use std::collections::BTreeSet;
use std::process::Command;

use tilewright_progen::census::{self, Census};
use tilewright_progen::executors::{self, Plan};
use tilewright_progen::generate::{generate, generate_counting};
use tilewright_progen::plain;
use tilewright_progen::program::*;
use tilewright_progen::shrink;
use tilewright_progen::source;

const SEEDS: u64 = 300;

/// Every so many programs, one is compiled by the vendor's compiler, for the targets in turn.
const COMPILED: u64 = 60;

/// Every so many, one runs as machine code in the emulator, for AMD's targets in turn.
const EMULATED: u64 = 5;

/// Workers of their own test the programs, so that one that hangs or ends its process is named as
/// well.
#[test]
fn three_hundred_programs_compute_what_they_say() {
    let done = Command::new(env!("CARGO_BIN_EXE_tilewright-progen"))
        .args(["run", "--quiet", "--timeout", "60"])
        .args(["--seeds", &format!("0..{SEEDS}")])
        .args(["--toolchains-every", &COMPILED.to_string()])
        .args(["--emulate-every", &EMULATED.to_string()])
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && said.ends_with(&format!("{SEEDS} passed, 0 failed\n")),
        "`tilewright-progen one SEED` says more:\n{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

#[test]
fn a_seed_is_a_program() {
    let mut texts = BTreeSet::new();
    for seed in 0..60 {
        let text = source::print(&generate(seed));
        assert_eq!(text, source::print(&generate(seed)), "seed {seed}");
        texts.insert(text);
    }
    assert_eq!(texts.len(), 60, "some seeds give the same program");
}

/// The first programs are the same on every machine and day.
#[test]
fn seeds_keep_their_programs() {
    let hash = |text: &str| {
        text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    let all: String = (0..20).map(|seed| source::print(&generate(seed))).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/first_programs.hash");
    let found = format!("{:016x}\n", hash(&all));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &found).expect("it can be written");
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        found, expected,
        "the generator changed, and every seed with it; BLESS=1 takes it as it is now"
    );
}

#[test]
fn programs_have_every_construct() {
    let mut found = Census::new();
    let mut thrown = 0;
    for seed in 0..SEEDS {
        let (program, attempts) = generate_counting(seed);
        thrown += attempts;
        census::count(&program, &mut found);
    }
    let mut missing = Vec::new();
    for (least, names) in CONSTRUCTS {
        for name in *names {
            let count = found.get(*name).copied().unwrap_or(0);
            if count < *least {
                missing.push(format!("{name}: in {count} programs and not {least}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}\n{found:#?}", missing.join("\n"));
    assert!(thrown < SEEDS as u32 * 2, "{thrown} programs thrown away");
}

/// Constructs, and in how many of the programs each must be at least.
const CONSTRUCTS: &[(u32, &[&str])] = &[
    (
        60,
        &[
            "parallel loop",
            "copy global to shared",
            "copy global to fragment",
            "copy shared to global",
            "copy fragment to global",
            "gemm",
            "pipelined loop",
            "if_then_else",
            "cast",
            "cast between floats and integers",
            "dynamic size",
        ],
    ),
    (
        20,
        &[
            "serial loop",
            "unrolled loop",
            "if",
            "else",
            "alloc_var of a constant",
            "alloc_var of an expression",
            "alloc_var of shared memory",
            "alloc_var of the thread's number",
            "store by thread number",
            "condition in a parallel loop",
            "loop count of an expression",
            "cumsum",
            "reverse scan",
            "fill",
            "tensor of 1 to 3 elements",
            "grid of two axes",
            "gemm transposed",
            "gemm policy",
            "gemm of float16",
            "gemm operand in fragment",
            "annotated layout",
            "atomic add",
            "atomic on global memory",
            "reduce sum",
            "reduce max",
            "reduce without clear",
            "reduce along 0",
            "reduce along 1",
            "threads that are no multiple of 64",
            "more than 256 threads",
            "tensor of int8",
            "tensor of float16",
            "tensor of bfloat16",
            "tensor of float32",
            "tensor of int32",
            "Mod",
            "FloorDiv",
            "Min",
            "Max",
        ],
    ),
    (
        6,
        &[
            "tensor read after it was written",
            "pipelined by the plain schedule",
            "while loop",
            "break",
            "vectorized loop",
            "view",
            "transpose",
            "cummax",
            "mbarrier handshake",
            "warp group",
            "condition in a pipelined loop",
            "pipelined, 0 stages",
            "pipelined, 1 stages",
            "pipelined, 2 stages",
            "pipelined, 3 stages",
            "pipelined, 4 stages",
            "pipelined, 5 stages",
            "reduce min",
            "reduce abssum",
            "reduce absmax",
            "reduce bitand",
            "reduce bitor",
            "reduce bitxor",
            "atomic max",
            "atomic min",
            "atomic on shared memory",
            "atomic on a tile",
            "gemm of bfloat16",
            "gemm of int8",
            "gemm clears",
            "copy shared to fragment",
            "copy fragment to shared",
            "tensor of bool",
            "tensor of uint8",
            "tensor of int16",
            "tensor of int64",
            "tensor of float8_e4m3fn",
            "tensor of float8_e5m2",
            "Shl",
            "Shr",
            "And",
            "Or",
            "Xor",
            "abs",
            "use_swizzle",
        ],
    ),
    (
        2,
        &[
            "continue",
            "sync_threads",
            "gemm of float8_e4m3fn",
            "gemm of float32",
        ],
    ),
];

/// A program that passes everywhere, with a statement that matters.
fn passing() -> (Program, Vec<Vec<i64>>) {
    let plan = Plan {
        targets: vec!["sm_80"],
        orders: 1,
        ..Plan::default()
    };
    for seed in 0.. {
        let program = generate(seed);
        let Ok(expected) = plain::run(&program) else {
            continue;
        };
        if program.body.len() > 4 && executors::check(&program, &expected, &plan).is_ok() {
            return (program, expected);
        }
    }
    unreachable!("some program passes")
}

#[test]
fn a_dropped_statement_is_seen() {
    let (program, expected) = passing();
    let plan = Plan {
        targets: Vec::new(),
        ..Plan::default()
    };
    let mut seen = 0;
    for n in 0..program.body.len() {
        let mut faulty = program.clone();
        faulty.body.remove(n);
        // The tensors must stay the same ones, and the program a valid one.
        let same = faulty.tensors().eq(program.tensors());
        if same
            && plain::run(&faulty).is_ok_and(|found| found != expected)
            && let Err(failure) = executors::check(&faulty, &expected, &plan)
        {
            assert_eq!(failure.kind, "reference-value");
            seen += 1;
        }
    }
    // A store whose value is another is always there to be changed.
    let mut faulty = program.clone();
    assert!(change_a_value(&mut faulty.body), "nothing to change");
    if plain::run(&faulty).is_ok_and(|found| found != expected) {
        let failure = executors::check(&faulty, &expected, &plan).expect_err("a wrong value");
        assert_eq!(failure.kind, "reference-value");
        seen += 1;
    }
    assert!(seen > 0, "no fault was seen\n{}", source::print(&program));
}

fn change_a_value(list: &mut [Stmt]) -> bool {
    for stmt in list.iter_mut().rev() {
        if let Stmt::Store(_, _, value) = stmt {
            *value = Expr::binary(BinOp::Add, value.clone(), Expr::int(1));
            return true;
        }
        if let Stmt::Fill(_, value) = stmt {
            *value += 1;
            return true;
        }
        for child in stmt.children_mut() {
            if change_a_value(child) {
                return true;
            }
        }
    }
    false
}

#[test]
fn failing_programs_become_small() {
    let has_reduce = |p: &Program| {
        let mut found = false;
        p.walk(&mut |s| found |= matches!(s, Stmt::Reduce { .. }));
        found
    };
    let size = |p: &Program| {
        let mut count = 0;
        p.walk(&mut |_| count += 1);
        count
    };
    let mut shrunk = 0;
    for seed in 0..40 {
        let program = generate(seed);
        if !has_reduce(&program) || size(&program) < 10 {
            continue;
        }
        let (small, steps) = shrink::shrink(&program, 2000, |p, _| has_reduce(p));
        assert!(has_reduce(&small));
        assert!(plain::run(&small).is_ok());
        // Two tiles, what one holds, and the fold.
        assert!(size(&small) <= 5, "{}", source::print(&small));
        assert_eq!(shrink::apply(&program, &steps).as_ref(), Some(&small));
        shrunk += 1;
        if shrunk == 3 {
            return;
        }
    }
    panic!("no program to make smaller");
}

#[test]
fn invalid_programs_are_refused() {
    // Without their first copies, programs read what nothing wrote.
    let mut wrong = 0;
    for seed in 0..40 {
        let mut program = generate(seed);
        let before = program.body.len();
        program.body.retain(|s| match s {
            Stmt::Copy(src, _) => program.buffers[src.buf.0].scope != Scope::Global,
            _ => true,
        });
        if program.body.len() < before
            && matches!(plain::run(&program), Err(plain::Invalid::Uninitialised(_)))
        {
            wrong += 1;
        }
    }
    assert!(wrong > 0, "no read of what nothing wrote was refused");
}
