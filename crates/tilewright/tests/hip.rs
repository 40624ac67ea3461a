//! Every example compiles for every AMD target with the real compiler and keeps its registers:
//! nothing spills, nothing is in scratch memory, and what the audit can compare is as scheduled.
//! No GPU is needed, clang is.

mod corpus;

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::codegen;
use tilewright::gfx9::audit::{Kind, Step};
use tilewright::ir::{Scalar, SourceMap, Target};
use tilewright::jit::{
    self,
    audit::{Budget, KernelAudit},
};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{AmdClang, HipOptions};

/// What a hot loop may spend on addresses where nothing else is said.
const FEW: Budget = addresses(6);

/// The same where both operands of a gemm are read along their rows: a place for each operand and
/// half of a swizzled row, on gfx942 the place that tiles are written to. On gfx950 reads stand by themselves
/// between matrix instructions, each with its place: the loop of 128x128x64 takes three fifths of the
/// time that it took with 6.
const ALONG_ROWS: (Budget, Budget) = (addresses(6), addresses(14));

/// The same for halves of the waves that change places: the parts that a half reads at one time
/// have places of their own. The loop takes two thirds of the time that it took with 5.
const HALVES: Budget = addresses(14);

/// The same of float64, on gfx942 and on gfx950: a row is read in four steps, each of which finds both
/// operands at places of its own; on gfx950 so does each read, between matrix instructions.
const FOUR_STEPS: (Budget, Budget) = (addresses(10), addresses(22));

/// Conditions that are kept for all of a loop are more than there are scalar registers; the compiler puts
/// some into lanes of a vector register.
const SCALARS_IN_LANES: (&str, Target) = ("mamba_chunk_scan.py", Target::Gfx950);

/// Products that the target has no instruction for: their factors are written out by the threads in the hot
/// loop, which nobody counts. What is computed must still not be in doubt.
const EXPANDED: [(&str, Target); 3] = [
    ("gemm_blockscaled.py", Target::Gfx942),
    ("gemm_sp.py", Target::Gfx942),
    ("gemm_sp.py", Target::Gfx950),
];

/// What the hot loops of other examples spend, on gfx942 and on gfx950: the figures measured, so
/// that one instruction more is seen.
const BUDGETS: [(&str, Budget, Budget); 16] = [
    // Rows are reduced in LDS by inner loops, whose index is in the addresses. On gfx950 the
    // compiler keeps the outer loop's index in a vector register, for lanes compare with it or load
    // by it, and reads it back for the copies.
    // Sums that are added to a tensor atomically have several rows of it in a lane.
    ("attention_bwd.py", addresses(18), index_read(21)),
    ("attention_fwd.py", addresses(17), index_read(17)),
    ("attention_gqa.py", addresses(17), index_read(17)),
    ("blocksparse_gemm.py", FEW, index_read(6)),
    ("dequant_gemm.py", addresses(9), index_read(10)),
    ("fp8_gemm_blockwise.py", FEW, addresses(7)),
    // Scales have places of their own.
    ("gemm_blockscaled.py", FEW, addresses(10)),
    // Every element's place in the image is worked out from its number in the patch.
    ("convolution.py", addresses(86), addresses(88)),
    // An operand that is read across its rows has one place for each pattern of its swizzle, and
    // the version is added to each.
    ("gemm.py", addresses(23), addresses(12)),
    ("linear_attention.py", addresses(8), addresses(27)),
    // Loads that nothing counts, or that are guarded, are plain: addresses of 64 bits.
    (
        "mamba_chunk_scan.py",
        addresses(13),
        Budget {
            lane_reads: 42,
            ..addresses(4)
        },
    ),
    ("grouped_gemm.py", addresses(8), addresses(10)),
    // On gfx950 each read stands by itself between matrix instructions, with its place; of the one that
    // stays, the loop over tiles is the hot one, with all that stands around the one along K.
    ("gemm_splitk.py", FEW, addresses(8)),
    ("gemm_persistent.py", FEW, addresses(19)),
    ("grouped_gemm_fp8.py", addresses(12), FEW),
    // The copying waves' loop is joined with the multiplying ones', and its loads are plain.
    ("warp_specialized_gemm.py", addresses(21), addresses(13)),
];

const fn index_read(address_arithmetic: u32) -> Budget {
    Budget {
        lane_reads: 1,
        ..addresses(address_arithmetic)
    }
}

const fn addresses(address_arithmetic: u32) -> Budget {
    Budget {
        address_arithmetic,
        lane_reads: 0,
    }
}

/// A kernel: its name in titles, its file, its settings.
type Kernel = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// The gemm whose loop has nothing that the schedule does not count.
const COUNTED: Kernel = (
    "gemm",
    "gemm.py",
    &[("trans_B", "True"), ("dtype", "bfloat16")],
);

/// The same of float64.
const DOUBLE: Kernel = (
    "gemm of float64",
    "gemm.py",
    &[
        ("trans_B", "True"),
        ("dtype", "float64"),
        ("accum_dtype", "float64"),
        ("block_M", "64"),
        ("block_N", "64"),
        ("block_K", "16"),
    ],
);

/// Kernels that get faults, and the faults that they do not get. In the loops of the last three
/// the compiler waits for some loads itself; where it waits for global memory, a looser vmcnt is
/// put right by it, and on gfx950 a dropped lgkmcnt, where a wave writes nothing to LDS, or reads
/// from it afterwards and uses that before it meets the others.
const FAULTY: [(Kernel, &[(Target, &str)]); 5] = [
    (COUNTED, &[]),
    (DOUBLE, &[]),
    (
        ("gemm_splitk", "gemm_splitk.py", &[]),
        &[(Target::Gfx950, "dropped lgkmcnt")],
    ),
    (("attention_fwd", "attention_fwd.py", &[]), &[]),
    (
        ("dequant_gemm", "dequant_gemm.py", &[]),
        &[
            (Target::Gfx942, "looser vmcnt"),
            (Target::Gfx950, "looser vmcnt"),
            (Target::Gfx950, "dropped lgkmcnt"),
        ],
    ),
];

/// Puts a fault into the source of a loop, where there is a place for it.
type Plant = fn(&str) -> Option<String>;

/// Faults for the source of a loop.
const FAULTS: [(&str, Plant); 4] = [
    ("looser vmcnt", |text| {
        let at = text.match_indices("tw::wait<").find(|(at, _)| {
            !text[*at..].starts_with("tw::wait<63") && text[*at..].contains(", 15>();")
        })?;
        let end = at.0 + text[at.0..].find(';')? + 1;
        Some(format!(
            "{}tw::wait<63, 15>();{}",
            &text[..at.0],
            &text[end..]
        ))
    }),
    ("dropped lgkmcnt", |text| {
        let wait = "tw::wait<63, 0>();";
        let places = text.match_indices(wait).map(|(at, _)| at);
        // One that a barrier follows, if there is such a one.
        let before_barrier = |at: &usize| {
            text[at + wait.len()..]
                .trim_start()
                .starts_with("tw::barrier")
        };
        let at = places.clone().find(before_barrier).or(places.min())?;
        Some(format!("{}{}", &text[..at], &text[at + wait.len()..]))
    }),
    ("dropped barrier", |text| {
        replace(text, "tw::barrier();", "")
    }),
    ("added fence", |text| {
        replace(text, "tw::barrier();", "__threadfence(); tw::barrier();")
    }),
];

fn replace(text: &str, what: &str, instead: &str) -> Option<String> {
    text.contains(what).then(|| text.replacen(what, instead, 1))
}

/// The loop of a gemm on gfx950 that copies straight to LDS: tile, threads, and what one wave has
/// in an iteration.
struct Loop {
    dtype: &'static str,
    tile: [u32; 3],
    threads: u32,
    mfma: (&'static str, u32),
    copies: u32,
    reads: u32,
}

/// A wave has 128x64 of the result where it has most: 8 rows and 4 columns of 16, K by 32 (128 for
/// fp8); reads are rows plus columns, 16 bytes each; copies are the tiles' bytes over 16 and the
/// threads.
const LOOPS: [Loop; 5] = [
    Loop {
        dtype: "bfloat16",
        tile: [256, 256, 64],
        threads: 512,
        mfma: ("v_mfma_f32_16x16x32_bf16", 64),
        copies: 8,
        reads: 24,
    },
    Loop {
        dtype: "float16",
        tile: [256, 256, 64],
        threads: 512,
        mfma: ("v_mfma_f32_16x16x32_f16", 64),
        copies: 8,
        reads: 24,
    },
    Loop {
        dtype: "float8_e4m3fn",
        tile: [256, 256, 128],
        threads: 512,
        mfma: ("v_mfma_f32_16x16x128_f8f6f4", 32),
        copies: 8,
        reads: 24,
    },
    Loop {
        dtype: "bfloat16",
        tile: [128, 128, 64],
        threads: 256,
        mfma: ("v_mfma_f32_16x16x32_bf16", 32),
        copies: 8,
        reads: 16,
    },
    Loop {
        dtype: "bfloat16",
        tile: [256, 128, 64],
        threads: 512,
        mfma: ("v_mfma_f32_16x16x32_bf16", 32),
        copies: 6,
        reads: 16,
    },
];

/// Tiles that were refused, each for what its name says. The whole of each is compared with its plan.
const ONCE_REFUSED: [(Target, Kernel); 7] = [
    (
        Target::Gfx950,
        (
            "operands that vector instructions make, of sums by number",
            "gemm.py",
            &[
                ("dtype", "float8_e4m3fn"),
                ("block_M", "224"),
                ("block_N", "48"),
                ("block_K", "64"),
                ("threads", "64"),
                ("num_stages", "2"),
            ],
        ),
    ),
    (
        Target::Gfx950,
        (
            "a product's sum is read a wait state too early",
            "gemm.py",
            &[
                ("dtype", "float8_e4m3fn"),
                ("trans_A", "True"),
                ("K", "1000"),
                ("block_M", "192"),
                ("block_K", "64"),
                ("threads", "256"),
                ("num_stages", "2"),
            ],
        ),
    ),
    (
        Target::Gfx950,
        (
            "values of the compiler's in registers of the sums",
            "gemm.py",
            &[
                ("dtype", "bfloat16"),
                ("trans_A", "True"),
                ("M", "4096"),
                ("N", "4096"),
                ("K", "4000"),
                ("block_M", "256"),
                ("block_N", "256"),
                ("block_K", "128"),
                ("threads", "256"),
            ],
        ),
    ),
    (
        Target::Gfx950,
        (
            "sums of the compiler's in registers of other sums",
            "attention_fwd.py",
            &[
                ("dtype", "bfloat16"),
                ("dim", "128"),
                ("is_causal", "True"),
                ("block_M", "256"),
                ("block_N", "32"),
            ],
        ),
    ),
    (
        Target::Gfx942,
        (
            "loads that the compiler put in another order",
            "attention_fwd.py",
            &[
                ("dtype", "bfloat16"),
                ("dim", "128"),
                ("seq_len", "1024"),
                ("is_causal", "True"),
                ("block_M", "128"),
                ("threads", "256"),
            ],
        ),
    ),
    (
        Target::Gfx950,
        (
            "waits for spills between copies",
            "attention_fwd.py",
            &[
                ("dim", "128"),
                ("seq_len", "1024"),
                ("block_M", "256"),
                ("num_stages", "2"),
            ],
        ),
    ),
    (
        Target::Gfx950,
        (
            "the loop along K and the ends of its pipeline in a loop over tiles",
            NEST,
            &[],
        ),
    ),
];

/// A block that makes several tiles, one after another: in the loop over them stand more matrix instructions
/// than in the one along K.
const NEST: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/kernels/tiles_in_a_block.py"
);

/// Those whose hot loop is none of the compiled code's.
const UNCOMPARED: [&str; 0] = [];

fn main() {
    let args = Arguments::from_args();
    let targets = [Target::Gfx942, Target::Gfx950];
    let mut trials: Vec<Trial> = corpus::trials(&targets, compiles).collect();
    for target in targets {
        for kernel in [COUNTED, DOUBLE] {
            let title = format!("{target} {} is as scheduled", kernel.0);
            trials.push(Trial::test(title, move || {
                let report = audited(kernel, target, Ok)?;
                let alone = report.uncompared.is_none() && report.own_waits.is_none();
                match report.passed() && alone {
                    true => Ok(()),
                    false => Err(format!("{report:?}").into()),
                }
            }));
        }
        let title = format!("{target} matrix instructions and copies to LDS");
        trials.push(Trial::test(title, move || instructions(target)));
        for (kernel, healed) in FAULTY {
            let faults = FAULTS
                .into_iter()
                .filter(|f| !healed.contains(&(target, f.0)));
            for (name, plant) in faults {
                let title = format!("{target} {} with {name}", kernel.0);
                trials.push(Trial::test(title, move || finds(kernel, target, plant)));
            }
        }
    }
    for l in LOOPS {
        let [m, n, k] = l.tile;
        let title = format!("gfx950 {} gemm of {m}x{n}x{k} in two stages", l.dtype);
        trials.push(Trial::test(title, move || two_stages(&l)));
    }
    for (target, kernel) in ONCE_REFUSED {
        let title = format!("{target} {} is not refused: {}", kernel.1, kernel.0);
        trials.push(Trial::test(title, move || {
            let audit = audited(kernel, target, Ok)?;
            let mut findings = audit.report.findings.iter();
            if let Some(wrong) = findings.find(|f| !f.kind.is_cost()) {
                return Err(wrong.to_string().into());
            }
            let compared = audit.uncompared.is_none() != UNCOMPARED.contains(&kernel.0);
            match compared && audit.report.unplanned.is_none() {
                true => Ok(()),
                false => Err(format!("{:?}, {:?}", audit.uncompared, audit.report).into()),
            }
        }));
    }
    libtest_mimic::run(&args, trials).exit();
}

/// As it stands the audit has nothing to say; with the fault in its loop it names a line.
fn finds(kernel: Kernel, target: Target, plant: Plant) -> Result<(), Failed> {
    let report = audited(kernel, target, |text| {
        let kernel = text.find("extern \"C\"").unwrap_or(0);
        let body = kernel + text[kernel..].find("for (int k = ").unwrap_or(0);
        let (head, tail) = text.split_at(body);
        let planted = plant(tail).ok_or("the loop has no place for the fault")?;
        Ok(format!("{head}{planted}"))
    })?;
    match report.report.findings.iter().any(|f| f.line > 0) {
        true => Ok(()),
        false => Err(format!("nothing found: {report:?}").into()),
    }
}

/// What the loop holds is what its tile takes, in registers that two waves a SIMD have, and it
/// never waits for copies that it has started since the last barrier, whatever the compiler may
/// suppose of types.
fn two_stages(l: &Loop) -> Result<(), Failed> {
    let [m, n, k] = l.tile.map(|e| e.to_string());
    let threads = l.threads.to_string();
    let settings = [
        ("trans_B", "True"),
        ("M", "4096"),
        ("N", "4096"),
        ("K", "4096"),
        ("block_M", &m),
        ("block_N", &n),
        ("block_K", &k),
        ("threads", &threads),
        ("num_stages", "2"),
        ("dtype", l.dtype),
    ];
    let of = |aliasing: &str| {
        let extra = vec![aliasing.to_string()];
        audited_with("gemm.py", &settings, Target::Gfx950, extra, Ok)
    };
    let (strict, loose) = (of("-fstrict-aliasing")?, of("-fno-strict-aliasing")?);
    for audit in [&strict, &loose] {
        let report = &audit.report;
        let alone = audit.uncompared.is_none() && audit.own_waits.is_none();
        if !audit.passed() || !alone {
            return Err(format!("{audit:?}").into());
        }
        let (mut started, mut drained) = (false, false);
        for step in &report.steps {
            match step {
                Step::Copies(_) => started = true,
                Step::Barrier => started = false,
                Step::Wait(wait) => drained |= started && wait.vmcnt == Some(0),
                _ => {}
            }
        }
        let mfma: Vec<(&str, u32)> = report.mfma.iter().map(|(n, c)| (n.as_str(), *c)).collect();
        let counts = (mfma, report.lds_copies, report.lds_reads);
        let wanted = (vec![l.mfma], l.copies, l.reads);
        if counts != wanted || drained || report.vgprs > 256 || report.lane_reads > 0 {
            return Err(format!("{counts:?} instead of {wanted:?}: {report}").into());
        }
    }
    match strict.report.steps == loose.report.steps {
        true => Ok(()),
        false => Err("the waits depend on strict aliasing".into()),
    }
}

/// The audit of a kernel, its source changed.
fn audited(
    (_, file, settings): Kernel,
    target: Target,
    change: impl FnOnce(String) -> Result<String, Failed>,
) -> Result<KernelAudit, Failed> {
    audited_with(file, settings, target, Vec::new(), change)
}

/// The same with more options of the compiler.
fn audited_with(
    file: &str,
    settings: &[(&str, &str)],
    target: Target,
    extra: Vec<String>,
    change: impl FnOnce(String) -> Result<String, Failed>,
) -> Result<KernelAudit, Failed> {
    let (func, source) = corpus::generated(file, settings, target)?;
    let options = HipOptions {
        extra,
        ..HipOptions::default()
    };
    let asm = clang()?
        .assembly(&change(source.text)?, target.name(), &options)
        .map_err(|e| e.to_string())?;
    let names: Vec<String> = source.kernels.iter().map(|k| k.name.clone()).collect();
    let mut audits =
        jit::audit::audit(&func, target, &names, &asm, budget(file, settings, target))?;
    audits.pop().ok_or_else(|| "no kernel".into())
}

/// Each matrix instruction of a target, the wave's copy to LDS and its arrival at a barrier are the
/// machine's.
fn instructions(target: Target) -> Result<(), Failed> {
    let (mut allocs, mut body, mut wanted) = (String::new(), String::new(), Vec::new());
    for (n, facts) in target.machine().mma.iter().enumerate() {
        let inst = facts.inst;
        let ab = u32::from(inst.m) * u32::from(inst.k) / 64;
        let acc = u32::from(inst.m) * u32::from(inst.n) / 64;
        for (name, scalar, count) in [("a", inst.a, ab), ("b", inst.b, ab), ("c", inst.acc, acc)] {
            allocs += &format!("    alloc {name}{n}: local {scalar}[{count}]\n");
        }
        let scales = match inst.scaled {
            true => {
                for name in ["sa", "sb"] {
                    allocs += &format!("    alloc {name}{n}: local float8_e8m0fnu[1]\n");
                    body += &format!("    {name}{n}[0] = float8_e8m0fnu(C[tx])\n");
                }
                format!(", sa{n}[0 +: 1] at [0], sb{n}[0 +: 1] at [0]")
            }
            false => String::new(),
        };
        body += &format!(
            "    mma a{n}[0 +: {ab}] at [0], b{n}[0 +: {ab}] at [0]{scales} -> c{n}[0 +: {acc}] at \
             [0] inst=\"{inst}\" width=1\n    C[tx] = C[tx] + float32(c{n}[0])\n"
        );
        let sum = match inst.acc {
            Scalar::I32 => "i32",
            Scalar::F64 => "f64",
            _ => "f32",
        };
        let scale = if inst.scaled { "_scale" } else { "mfma" };
        wanted.push(format!("{scale}_{sum}_{}x{}x{}_", inst.m, inst.n, inst.k));
    }
    let (bytes, copy) = match target {
        Target::Gfx950 => (16, "buffer_load_dwordx4"),
        _ => (4, "buffer_load_dword "),
    };
    wanted.push(copy.to_string());
    allocs += "    alloc bar: barrier uint64[1] arrivals=[1]\n";
    body += "    wait lgkmcnt(0)\n    mbarrier_arrive bar[0] warp\n";
    wanted.push("ds_inc_u32".to_string());
    if target.machine().ds_read_tr {
        // Behind the copy: each lane of 16 gets a column of what they read.
        body += "    s2r H[0 +: 64, 0 +: 16] at [tx // 4, tx % 4 * 4] -> R[0 +: 4] at [0] \
                 inst=\"ds_read_tr\" width=1\n    C[tx] = C[tx] + float32(R[0])\n";
        allocs += "    alloc H: shared float16[64, 16]\n    alloc R: local float16[4]\n";
        wanted.push("ds_read_b64_tr_b16".to_string());
    }
    let (width, all) = (bytes / 4, bytes / 4 * 64);
    let text = format!(
        "func @every level=device {{\n  param A: float32[{all}]\n  output C: float32[64]\n  kernel \
         grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {{\n    alloc S: shared float32[{all}]\n\
         {allocs}    g2s A[0 +: {all}] at [tx * {width}] -> S[0 +: {all}] at [tx * {width}] \
         inst=\"buffer_load_lds\" width={width} counter=vmcnt\n    wait vmcnt(0)\n    barrier bare\n    \
         C[tx] = S[{all} - 1 - tx]\n{body}  }}\n}}\n"
    );
    let mut sources = SourceMap::new();
    let file = sources.add("every.tw", text);
    let func = tilewright::ir::text::parse(sources.text(file), file)
        .map_err(|d| format!("{d:?}\n{}", sources.text(file)))?;
    let source = codegen::generate(&func, target, codegen::Options::default())
        .map_err(|d| d.message.clone())?;
    let asm = clang()?
        .assembly(&source.text, target.name(), &HipOptions::default())
        .map_err(|e| e.to_string())?;
    for want in wanted {
        let found = asm.lines().any(|l| l.contains(&want));
        if !found {
            return Err(format!("no instruction `{want}`").into());
        }
    }
    match asm.contains(" offen lds") {
        true => Ok(()),
        false => Err("no copy to LDS".into()),
    }
}

fn clang() -> Result<AmdClang, Failed> {
    AmdClang::find(&Env::process()).map_err(|missing| {
        format!("this test needs clang: run scripts/setup-clang\n{missing}").into()
    })
}

fn compiles(name: &str, target: Target) -> Result<(), Failed> {
    let (func, source) = corpus::generated(name, &[], target)?;
    let program = clang()?
        .compile(&source.text, target.name(), &HipOptions::default())
        .map_err(|e| e.to_string())?;
    let warnings = program.warnings();
    if !warnings.is_empty() {
        return Err(format!("the compiler warns: {warnings:?}").into());
    }
    let in_lanes = (name, target) == SCALARS_IN_LANES;
    for kernel in program.kernels() {
        let scalars = kernel.sgpr_spills > 0 && !in_lanes;
        if kernel.scratch_bytes > 0 || kernel.vgpr_spills > 0 || scalars {
            return Err(format!("{kernel:?}").into());
        }
    }
    let names: Vec<String> = source.kernels.iter().map(|k| k.name.clone()).collect();
    for mut audit in jit::audit::audit(
        &func,
        target,
        &names,
        program.asm(),
        budget(name, &[], target),
    )? {
        if in_lanes {
            // That it has some is known; that no vector register is among them was seen above.
            audit.report.findings.retain(|f| f.kind != Kind::Spill);
        }
        if EXPANDED.contains(&(name, target)) {
            audit.report.findings.retain(|f| !f.kind.is_cost());
        }
        if !audit.passed() {
            return Err(format!("{audit:?}\n{}", audit.report).into());
        }
    }
    Ok(())
}

fn budget(name: &str, settings: &[(&str, &str)], target: Target) -> Budget {
    if settings.contains(&("dtype", "float64")) {
        return match target {
            Target::Gfx950 => FOUR_STEPS.1,
            _ => FOUR_STEPS.0,
        };
    }
    if name == "gemm.py" && settings.contains(&("trans_B", "True")) {
        return match settings.contains(&("threads", "512")) {
            true => HALVES,
            false if target == Target::Gfx950 => ALONG_ROWS.1,
            false => ALONG_ROWS.0,
        };
    }
    let own = BUDGETS.iter().find(|b| b.0 == name);
    own.map_or(FEW, |(_, gfx942, gfx950)| match target {
        Target::Gfx950 => *gfx950,
        _ => *gfx942,
    })
}
