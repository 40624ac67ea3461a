//! Faults to plant in `bulk_rows.tw`: the checker and the simulator are to find each.

use crate::bulk_mutants::Mutant;

const WAIT: &str = "      wait tma_store(0) read\n      sync_warp\n";
const FENCE: &str = "      fence async_proxy\n      sync_warp\n";
const ISSUE: &str = "      if tx % 32 == 0 {\n        tma_store";
const CLOSE: &str = "        commit tma_store\n      }\n    }\n";
const END: &str = "    }\n    wait tma_store(0) read\n  }";
const ROWS: &str = "S[0 +: 32, 0 +: 128] at [tx // 32 * 16, p * 64] ->";
const TO: &str = "at [tx // 32 * 16 + tx % 16, c * 16 + tx // 16 % 2 * 8]";

pub const MUTANTS: &[Mutant] = &[
    // The tile is written again.
    (
        "no wait before the tile is written",
        WAIT,
        "      sync_warp\n",
    ),
    (
        "one group may still read the tile",
        WAIT,
        "      wait tma_store(1) read\n      sync_warp\n",
    ),
    (
        "other lanes do not hear of the wait",
        WAIT,
        "      wait tma_store(0) read\n",
    ),
    (
        "the wait behind the barrier",
        WAIT,
        "      sync_warp\n      wait tma_store(0) read\n",
    ),
    (
        "another lane waits",
        WAIT,
        "      if tx % 32 == 1 {\n        wait tma_store(0) read\n      }\n      sync_warp\n",
    ),
    (
        "one warp waits",
        WAIT,
        "      if tx < 32 {\n        wait tma_store(0) read\n      }\n      sync_warp\n",
    ),
    (
        "waits in some iterations",
        WAIT,
        "      if i % 2 == 0 {\n        wait tma_store(0) read\n      }\n      sync_warp\n",
    ),
    // The engine sees what lanes wrote.
    ("no fence", FENCE, "      sync_warp\n"),
    ("no barrier of the warp", FENCE, "      fence async_proxy\n"),
    (
        "the fence behind the barrier",
        FENCE,
        "      sync_warp\n      fence async_proxy\n",
    ),
    (
        "the fence of one lane",
        FENCE,
        "      if tx % 32 == 0 {\n        fence async_proxy\n      }\n      sync_warp\n",
    ),
    (
        "the fence of one warp",
        FENCE,
        "      if tx < 32 {\n        fence async_proxy\n      }\n      sync_warp\n",
    ),
    // What is stored.
    (
        "the rows of the other warp",
        ROWS,
        "S[0 +: 32, 0 +: 128] at [16 - tx // 32 * 16, p * 64] ->",
    ),
    (
        "written by the other warp",
        TO,
        "at [16 - tx // 32 * 16 + tx % 16, c * 16 + tx // 16 % 2 * 8]",
    ),
    // Groups and the end.
    ("no group is closed", CLOSE, "      }\n    }\n"),
    (
        "another lane closes the group",
        CLOSE,
        "      }\n      if tx % 32 == 1 {\n        commit tma_store\n      }\n    }\n",
    ),
    ("the kernel ends before", END, "    }\n  }"),
    (
        "one group may be left at the end",
        END,
        "    }\n    wait tma_store(1) read\n  }",
    ),
    (
        "one warp waits at the end",
        END,
        "    }\n    if tx < 32 {\n      wait tma_store(0) read\n    }\n  }",
    ),
    (
        "another lane waits at the end",
        END,
        "    }\n    if tx % 32 == 1 {\n      wait tma_store(0) read\n    }\n  }",
    ),
];

/// Changes after which it is still right.
pub const HARMLESS: &[Mutant] = &[
    (
        "to have been written is more than to have been read",
        END,
        "    }\n    wait tma_store(0)\n  }",
    ),
    (
        "all lanes close a group",
        CLOSE,
        "      }\n      commit tma_store\n    }\n",
    ),
    (
        "barriers of the block",
        FENCE,
        "      fence async_proxy\n      barrier block\n",
    ),
    (
        "another lane issues, and all wait",
        ISSUE,
        "      if tx % 32 == 5 {\n        tma_store",
    ),
];
