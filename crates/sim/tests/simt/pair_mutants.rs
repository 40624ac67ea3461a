//! Faults to plant in `bulk_pairs.tw`: the checker and the simulator are to find each.

use crate::bulk_mutants::Mutant;

const ARRIVE: &str = "mbarrier_arrive empty[(i - 1) % 3] warp cluster";
const EXPECT: &str = "bytes=24576 arrive";
const WAIT_FULL: &str = "mbarrier_wait full[i % 3] parity=(i // 3 % 2)";
const WAIT_EMPTY: &str = "mbarrier_wait empty[i % 3] parity=((i // 3 + 1) % 2)";
const COUNTS: &str = "arrivals=[16, 16, 16]";
const TO_A: &str = "width=1 counter=mbarrier arrives=full[i % 3]\n";
const TO_B: &str = "arrives=full[i % 3] multicast=3";
const LIES: &str = "SB[rank * 32 +: 32, 0 +: 64] slot=(i % 3) at [rank * 32, 0]";
const HALF: &str = "B[i * 64 + rank * 32 +: 32, 0 +: 64] at [i * 64 + rank * 32, 0] -> \
                    SB[rank * 32 +: 32, 0 +: 64] slot=(i % 3) at [rank * 32, 0] inst=\"tma.32x64\"";

pub const PAIR_MUTANTS: &[Mutant] = &[
    (
        "nobody waits for the other block at the end",
        "    sync_cluster\n",
        "",
    ),
    (
        "only the own block hears that a tile is read",
        ARRIVE,
        "mbarrier_arrive empty[(i - 1) % 3] warp",
    ),
    ("nobody hears that a tile is read", ARRIVE, ""),
    (
        "every thread arrives",
        ARRIVE,
        "mbarrier_arrive empty[(i - 1) % 3] cluster",
    ),
    (
        "the tile before is released",
        ARRIVE,
        "mbarrier_arrive empty[(i + 1) % 3] warp cluster",
    ),
    (
        "the tile that is read is released",
        ARRIVE,
        "mbarrier_arrive empty[i % 3] warp cluster",
    ),
    ("own arrivals free a tile", COUNTS, "arrivals=[8, 8, 8]"),
    (
        "one warp less frees a tile",
        COUNTS,
        "arrivals=[15, 16, 16]",
    ),
    (
        "a tile waits for more than there are",
        COUNTS,
        "arrivals=[24, 24, 24]",
    ),
    ("the half stays at home", TO_B, "arrives=full[i % 3]"),
    (
        "what is one block's own goes to both",
        TO_A,
        "width=1 counter=mbarrier arrives=full[i % 3] multicast=3\n",
    ),
    (
        "bytes of the own copies alone",
        EXPECT,
        "bytes=20480 arrive",
    ),
    ("bytes of both blocks' copies", EXPECT, "bytes=40960 arrive"),
    (
        "bytes are announced and nobody arrives",
        EXPECT,
        "bytes=24576",
    ),
    (
        "both bring their half to one place",
        LIES,
        "SB[0 +: 32, 0 +: 64] slot=(i % 3) at [0, 0]",
    ),
    (
        "both bring all",
        HALF,
        "B[i * 64 +: 64, 0 +: 64] at [i * 64, 0] -> SB[0 +: 64, 0 +: 64] \
      slot=(i % 3) at [0, 0] inst=\"tma.64x64\"",
    ),
    (
        "another version",
        LIES,
        "SB[rank * 32 +: 32, 0 +: 64] slot=((i + 1) % 3) at [rank * 32, 0]",
    ),
    (
        "another barrier hears of it",
        TO_B,
        "arrives=full[(i + 1) % 3] multicast=3",
    ),
    ("no wait for the tile", WAIT_FULL, ""),
    ("no wait for room", WAIT_EMPTY, ""),
    (
        "the phase before",
        WAIT_EMPTY,
        "mbarrier_wait empty[i % 3] parity=(i // 3 % 2)",
    ),
    (
        "room of another version",
        WAIT_EMPTY,
        "mbarrier_wait empty[(i + 1) % 3] parity=((i // 3 + 1) % 2)",
    ),
];

/// What may be done otherwise.
pub const PAIR_HARMLESS: &[Mutant] = &[(
    "each brings the other half",
    HALF,
    "B[i * 64 + (1 - rank) * 32 +: 32, 0 +: 64] at [i * 64 + (1 - rank) * 32, 0] -> \
     SB[(1 - rank) * 32 +: 32, 0 +: 64] slot=(i % 3) at [(1 - rank) * 32, 0] inst=\"tma.32x64\"",
)];
