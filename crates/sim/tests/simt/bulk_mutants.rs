//! Faults to plant in `bulk_gemm.tw`: the checker and the simulator are to find each.

/// What it does, a piece of the text that is there once, and what it becomes.
pub type Mutant = (&'static str, &'static str, &'static str);

const EXPECT: &str = "mbarrier_expect_tx full[i % 3] bytes=24576 arrive";
const WAIT_FULL: &str = "mbarrier_wait full[i % 3] parity=(i // 3 % 2)";
const WAIT_EMPTY: &str = "mbarrier_wait empty[i % 3] parity=((i // 3 + 1) % 2)";
pub const RELEASE: &str =
    "if i >= 1 {\n          mbarrier_arrive empty[(i - 1) % 3] warp\n        }";
const ARRIVE: &str = "mbarrier_arrive empty[(i - 1) % 3] warp";
const READS_A: &str = "slot=(i % 3) at [tx // 128 * 64, ks * 16]";
const READS_B: &str = "slot=(i % 3) at [ks * 16, 0]";
const TO_A: &str =
    "slot=(i % 3) at [0, 0] inst=\"tma.128x64\" width=1 counter=mbarrier arrives=full[i % 3]";
const TO_B: &str =
    "slot=(i % 3) at [p * 32, 0] inst=\"tma.32x64\" width=1 counter=mbarrier arrives=full[i % 3]";
const LOAD_A: &str =
    "tma_load A[by * 128 +: 128, i * 64 +: 64] at [by * 128, i * 64] -> SA[0 +: 128, 0 +: 64] ";
const CONSUME: &str = "for i in serial(0, (k + 63) // 64) {\n        mbarrier_wait full";
const ISSUE: &str = "if tx == 256 {\n        for i in serial(0, (k + 63) // 64) {\n          mbarrier_wait empty[i % 3] parity=((i // 3 + 1) % 2)\n";
const PRODUCE: &str = "for i in serial(0, (k + 63) // 64) {\n          mbarrier_wait empty";

pub const MUTANTS: &[Mutant] = &[
    // What the consumers wait for.
    ("no wait for the tile", WAIT_FULL, ""),
    (
        "the other parity",
        WAIT_FULL,
        "mbarrier_wait full[i % 3] parity=((i // 3 + 1) % 2)",
    ),
    (
        "always parity 0",
        WAIT_FULL,
        "mbarrier_wait full[i % 3] parity=0",
    ),
    (
        "always parity 1",
        WAIT_FULL,
        "mbarrier_wait full[i % 3] parity=1",
    ),
    (
        "a parity that turns each time",
        WAIT_FULL,
        "mbarrier_wait full[i % 3] parity=(i % 2)",
    ),
    (
        "the next barrier",
        WAIT_FULL,
        "mbarrier_wait full[(i + 1) % 3] parity=(i // 3 % 2)",
    ),
    (
        "the barrier before",
        WAIT_FULL,
        "mbarrier_wait full[(i + 2) % 3] parity=(i // 3 % 2)",
    ),
    (
        "always the first barrier",
        WAIT_FULL,
        "mbarrier_wait full[0] parity=(i // 3 % 2)",
    ),
    (
        "the producer's barrier",
        WAIT_FULL,
        "mbarrier_wait empty[i % 3] parity=(i // 3 % 2)",
    ),
    (
        "a wait in the first iterations only",
        WAIT_FULL,
        "if i < 3 {\n mbarrier_wait full[i % 3] parity=(i // 3 % 2)\n }",
    ),
    (
        "a wait but in the first iteration",
        WAIT_FULL,
        "if i > 0 {\n mbarrier_wait full[i % 3] parity=(i // 3 % 2)\n }",
    ),
    (
        "only one group waits",
        WAIT_FULL,
        "if tx < 128 {\n mbarrier_wait full[i % 3] parity=(i // 3 % 2)\n }",
    ),
    // The products.
    ("registers are not fenced", "fence wgmma", ""),
    ("no group", "commit wgmma", ""),
    ("no wait for the product before", "wait wgmma(1)", ""),
    (
        "a product too many in flight",
        "wait wgmma(1)",
        "wait wgmma(2)",
    ),
    ("registers in flight at the end", "wait wgmma(0)", ""),
    (
        "one product in flight at the end",
        "wait wgmma(0)",
        "wait wgmma(1)",
    ),
    (
        "reads the next version of A",
        READS_A,
        "slot=((i + 1) % 3) at [tx // 128 * 64, ks * 16]",
    ),
    (
        "reads the version of A before",
        READS_A,
        "slot=((i + 2) % 3) at [tx // 128 * 64, ks * 16]",
    ),
    (
        "reads one version of A",
        READS_A,
        "slot=0 at [tx // 128 * 64, ks * 16]",
    ),
    (
        "reads the next version of B",
        READS_B,
        "slot=((i + 1) % 3) at [ks * 16, 0]",
    ),
    ("reads one version of B", READS_B, "slot=2 at [ks * 16, 0]"),
    // What the consumers tell.
    ("nobody arrives", RELEASE, ""),
    (
        "arrives before the product is waited for",
        "wait wgmma(1)\n        if i >= 1 {\n          mbarrier_arrive empty[(i - 1) % 3] warp\n        }",
        "if i >= 1 {\n          mbarrier_arrive empty[(i - 1) % 3] warp\n        }\n        wait wgmma(1)",
    ),
    (
        "arrives for the product in flight",
        ARRIVE,
        "mbarrier_arrive empty[i % 3] warp",
    ),
    (
        "every lane arrives",
        ARRIVE,
        "mbarrier_arrive empty[(i - 1) % 3]",
    ),
    (
        "arrives twice",
        ARRIVE,
        "mbarrier_arrive empty[(i - 1) % 3] warp\n          mbarrier_arrive empty[(i - 1) % 3] warp",
    ),
    (
        "one group arrives",
        RELEASE,
        "if i >= 1 && tx < 128 {\n mbarrier_arrive empty[(i - 1) % 3] warp\n }",
    ),
    (
        "arrives an iteration too late",
        RELEASE,
        "if i >= 2 {\n mbarrier_arrive empty[(i - 1) % 3] warp\n }",
    ),
    (
        "arrives from the start",
        RELEASE,
        "mbarrier_arrive empty[(i + 2) % 3] warp",
    ),
    (
        "arrives in some iterations",
        RELEASE,
        "if i >= 1 && i != 4 {\n mbarrier_arrive empty[(i - 1) % 3] warp\n }",
    ),
    (
        "arrives at the other barrier",
        ARRIVE,
        "mbarrier_arrive full[(i - 1) % 3] warp",
    ),
    (
        "arrives for the version before",
        ARRIVE,
        "mbarrier_arrive empty[(i + 1) % 3] warp",
    ),
    // The counts.
    (
        "empty counts one group",
        "arrivals=[8, 8, 8]",
        "arrivals=[4, 4, 4]",
    ),
    (
        "empty counts one too few",
        "arrivals=[8, 8, 8]",
        "arrivals=[7, 7, 7]",
    ),
    (
        "empty counts one too many",
        "arrivals=[8, 8, 8]",
        "arrivals=[9, 9, 9]",
    ),
    (
        "empty counts threads",
        "arrivals=[8, 8, 8]",
        "arrivals=[256, 256, 256]",
    ),
    (
        "one empty barrier counts wrong",
        "arrivals=[8, 8, 8]",
        "arrivals=[8, 8, 7]",
    ),
    (
        "full counts two",
        "arrivals=[1, 1, 1]",
        "arrivals=[2, 2, 2]",
    ),
    (
        "one full barrier counts two",
        "arrivals=[1, 1, 1]",
        "arrivals=[1, 2, 1]",
    ),
    // What the producer waits for.
    ("no wait for room", WAIT_EMPTY, ""),
    (
        "room of the other parity",
        WAIT_EMPTY,
        "mbarrier_wait empty[i % 3] parity=(i // 3 % 2)",
    ),
    (
        "room always of parity 1",
        WAIT_EMPTY,
        "mbarrier_wait empty[i % 3] parity=1",
    ),
    (
        "room in the next version",
        WAIT_EMPTY,
        "mbarrier_wait empty[(i + 1) % 3] parity=((i // 3 + 1) % 2)",
    ),
    (
        "room in the version before",
        WAIT_EMPTY,
        "mbarrier_wait empty[(i + 2) % 3] parity=((i // 3 + 1) % 2)",
    ),
    (
        "waits for its own barrier",
        WAIT_EMPTY,
        "mbarrier_wait full[i % 3] parity=((i // 3 + 1) % 2)",
    ),
    (
        "waits in the first round only",
        WAIT_EMPTY,
        "if i < 6 {\n mbarrier_wait empty[i % 3] parity=((i // 3 + 1) % 2)\n }",
    ),
    // What it announces.
    ("announces nothing", EXPECT, ""),
    (
        "arrives without bytes",
        EXPECT,
        "mbarrier_arrive full[i % 3]",
    ),
    (
        "announces and does not arrive",
        EXPECT,
        "mbarrier_expect_tx full[i % 3] bytes=24576",
    ),
    (
        "the bytes of A",
        EXPECT,
        "mbarrier_expect_tx full[i % 3] bytes=16384 arrive",
    ),
    (
        "the bytes of B",
        EXPECT,
        "mbarrier_expect_tx full[i % 3] bytes=8192 arrive",
    ),
    (
        "a box of B too few",
        EXPECT,
        "mbarrier_expect_tx full[i % 3] bytes=20480 arrive",
    ),
    (
        "a byte too few",
        EXPECT,
        "mbarrier_expect_tx full[i % 3] bytes=24575 arrive",
    ),
    (
        "a byte too many",
        EXPECT,
        "mbarrier_expect_tx full[i % 3] bytes=24577 arrive",
    ),
    (
        "a box of B too many",
        EXPECT,
        "mbarrier_expect_tx full[i % 3] bytes=28672 arrive",
    ),
    (
        "announces to the next barrier",
        EXPECT,
        "mbarrier_expect_tx full[(i + 1) % 3] bytes=24576 arrive",
    ),
    (
        "announces twice",
        EXPECT,
        "mbarrier_expect_tx full[i % 3] bytes=24576\n          mbarrier_expect_tx full[i % 3] bytes=24576 arrive",
    ),
    (
        "too few in one iteration",
        EXPECT,
        "mbarrier_expect_tx full[i % 3] bytes=(24576 - i // 5 % 2 * 4096) arrive",
    ),
    // What it loads.
    ("no load of A", LOAD_A, "# "),
    (
        "A into the next version",
        TO_A,
        "slot=((i + 1) % 3) at [0, 0] inst=\"tma.128x64\" width=1 counter=mbarrier arrives=full[i % 3]",
    ),
    (
        "A into one version",
        TO_A,
        "slot=0 at [0, 0] inst=\"tma.128x64\" width=1 counter=mbarrier arrives=full[i % 3]",
    ),
    (
        "A tells the next barrier",
        TO_A,
        "slot=(i % 3) at [0, 0] inst=\"tma.128x64\" width=1 counter=mbarrier arrives=full[(i + 1) % 3]",
    ),
    (
        "A tells the consumers' barrier",
        TO_A,
        "slot=(i % 3) at [0, 0] inst=\"tma.128x64\" width=1 counter=mbarrier arrives=empty[i % 3]",
    ),
    (
        "half of A",
        TO_A,
        "slot=(i % 3) at [0, 0] inst=\"tma.64x64\" width=1 counter=mbarrier arrives=full[i % 3]",
    ),
    (
        "B into the next version",
        TO_B,
        "slot=((i + 1) % 3) at [p * 32, 0] inst=\"tma.32x64\" width=1 counter=mbarrier arrives=full[i % 3]",
    ),
    (
        "B tells one barrier",
        TO_B,
        "slot=(i % 3) at [p * 32, 0] inst=\"tma.32x64\" width=1 counter=mbarrier arrives=full[0]",
    ),
    (
        "both boxes of B at one place",
        TO_B,
        "slot=(i % 3) at [0, 0] inst=\"tma.32x64\" width=1 counter=mbarrier arrives=full[i % 3]",
    ),
    (
        "one box of B",
        "tma_load for p < 2 do",
        "tma_load for p < 1 do",
    ),
    (
        "a barrier that is not there",
        TO_A,
        "slot=(i % 3) at [0, 0] inst=\"tma.128x64\" width=1 counter=mbarrier arrives=full[i % 4]",
    ),
    ("a warp issues", "if tx == 256 {", "if tx // 32 == 8 {"),
    ("nobody issues", "if tx == 256 {", "if tx == 384 {"),
    (
        "no warp's first issues, without a wait for room",
        ISSUE,
        "if tx == 257 {\n        for i in serial(0, (k + 63) // 64) {\n",
    ),
    // How often.
    (
        "a load too many",
        PRODUCE,
        "for i in serial(0, (k + 63) // 64 + 1) {\n          mbarrier_wait empty",
    ),
    (
        "a load too few",
        PRODUCE,
        "for i in serial(0, (k + 63) // 64 - 1) {\n          mbarrier_wait empty",
    ),
    (
        "a product too few",
        CONSUME,
        "for i in serial(0, (k + 63) // 64 - 1) {\n        mbarrier_wait full",
    ),
];

/// The text with a fault. A wait or arrival that goes leaves the lines as they are.
pub fn plant(text: &str, (name, from, to): &Mutant) -> String {
    assert_eq!(text.matches(from).count(), 1, "{name}");
    text.replacen(from, to, 1)
}

/// What may be done otherwise as well.
pub const HARMLESS: &[Mutant] = &[
    ("waits for all products", "wait wgmma(1)", "wait wgmma(0)"),
    (
        "announces in two parts",
        EXPECT,
        "mbarrier_expect_tx full[i % 3] bytes=16384\n          mbarrier_expect_tx full[i % 3] bytes=8192 arrive",
    ),
    (
        "parity and index by other words",
        WAIT_FULL,
        "mbarrier_wait full[(i + 3) % 3] parity=((i + 6) // 3 % 2)",
    ),
    ("another thread issues", "if tx == 256 {", "if tx == 352 {"),
    ("no warp's first issues", "if tx == 256 {", "if tx == 357 {"),
    (
        "every thread waits for the tile twice",
        WAIT_FULL,
        "mbarrier_wait full[i % 3] parity=(i // 3 % 2)\n        mbarrier_wait full[i % 3] parity=(i // 3 % 2)",
    ),
];
