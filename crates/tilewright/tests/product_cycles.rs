//! Cycles of an iteration of products on AMD, in the model of a compute unit. No GPU is needed, clang
//! is.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A product by `examples/gemm.py`, of one block.
struct Product {
    target: &'static str,
    dtype: &'static str,
    /// Rows, columns and depth of a tile.
    tile: [u32; 3],
    trans_a: bool,
    trans_b: bool,
    threads: u32,
    schedule: &'static str,
    /// The cycles that matrix units take for an iteration, and the most that it takes.
    busy: f64,
    most: f64,
}

const PRODUCTS: [Product; 17] = [
    bf16(false, true, 2165.0),
    bf16(false, false, 2200.0),
    bf16(true, false, 2245.0),
    bf16(true, true, 2235.0),
    // By `half_tiles`.
    Product {
        dtype: "float8_e4m3fn",
        tile: [256, 256, 128],
        ..bf16(false, true, 2140.0)
    },
    // One wave a SIMD, by `between_products`.
    Product {
        dtype: "float8_e4m3fn",
        tile: [256, 256, 128],
        threads: 256,
        ..bf16(false, true, 2145.0)
    },
    Product {
        threads: 256,
        ..bf16(false, true, 2255.0)
    },
    Product {
        threads: 256,
        ..bf16(false, false, 2330.0)
    },
    Product {
        tile: [128, 128, 64],
        threads: 256,
        busy: 512.0,
        ..bf16(false, false, 815.0)
    },
    Product {
        target: "gfx942",
        tile: [256, 256, 32],
        ..bf16(false, true, 2170.0)
    },
    // Operands whose rows run across K are read in vectors, and put together beside products.
    Product {
        target: "gfx942",
        tile: [256, 256, 32],
        ..bf16(false, false, 2180.0)
    },
    Product {
        target: "gfx942",
        tile: [256, 256, 32],
        ..bf16(true, false, 2205.0)
    },
    Product {
        target: "gfx942",
        tile: [256, 256, 32],
        ..bf16(true, true, 2180.0)
    },
    Product {
        target: "gfx942",
        dtype: "float8_e4m3fnuz",
        tile: [256, 256, 64],
        ..bf16(false, false, 2180.0)
    },
    // What is copied is waited for an iteration, whoever multiplies meanwhile.
    Product {
        target: "gfx942",
        tile: [128, 128, 32],
        busy: 512.0,
        ..bf16(false, true, 945.0)
    },
    Product {
        tile: [64, 64, 64],
        threads: 128,
        busy: 128.0,
        ..bf16(false, true, 540.0)
    },
    Product {
        schedule: "half_tiles",
        ..bf16(false, true, 2220.0)
    },
];

const fn bf16(trans_a: bool, trans_b: bool, most: f64) -> Product {
    Product {
        target: "gfx950",
        dtype: "bfloat16",
        tile: [256, 256, 64],
        trans_a,
        trans_b,
        threads: 512,
        schedule: "auto",
        busy: 2048.0,
        most,
    }
}

#[test]
fn products_are_near_the_rate_of_the_matrix_units() {
    for product in &PRODUCTS {
        let [m, n, k] = product.tile;
        let python = |b: bool| if b { "True" } else { "False" };
        let settings = [
            format!("M={m}"),
            format!("N={n}"),
            format!("K={}", 8 * k),
            format!("block_M={m}"),
            format!("block_N={n}"),
            format!("block_K={k}"),
            format!("dtype={}", product.dtype),
            format!("trans_A={}", python(product.trans_a)),
            format!("trans_B={}", python(product.trans_b)),
            format!("threads={}", product.threads),
            "num_stages=2".to_string(),
        ];
        let options = ["--target", product.target, "--schedule", product.schedule];
        let (busy, turn) = hot_loop("gemm.py", &settings, &options);
        println!("{} {settings:?}: {turn}", product.target);
        assert_eq!(busy, product.busy);
        assert!(turn <= product.most, "{settings:?}: {turn}");
    }
}

/// Products with scales, of 256 x 256 x 128 by instructions that take these.
#[test]
fn products_with_scales_are_near_the_rate_of_the_matrix_units() {
    for (a, b, busy, most) in [
        ("float8_e4m3fn", "float8_e4m3fn", 2048.0, 2425.0),
        ("float4_e2m1fn", "float4_e2m1fn", 1024.0, 1620.0),
        ("float6_e2m3fn", "float6_e3m2fn", 1024.0, 2160.0),
        ("float8_e4m3fn", "float4_e2m1fn", 2048.0, 2245.0),
    ] {
        let settings = [
            "M=256".to_string(),
            "N=256".to_string(),
            "K=1024".to_string(),
            "block_M=256".to_string(),
            "block_N=256".to_string(),
            "threads=512".to_string(),
            format!("dtype={a}"),
            format!("dtype_B={b}"),
        ];
        let (matrix, turn) = hot_loop("gemm_blockscaled.py", &settings, &["--target", "gfx950"]);
        println!("{a} by {b}: {turn}");
        assert_eq!(matrix, busy);
        assert!(turn <= most, "{a} by {b}: {turn}");
    }
}

/// Attention forward of heads of 128, of the last block, which sees all keys: queries and keys of a tile,
/// whether causal, and the most that an iteration takes of which matrix units multiply for 2048 cycles.
#[test]
fn attention_is_near_the_rate_of_the_matrix_units() {
    for (queries, keys, causal, most) in [
        (256, 64, "False", 3400.0),
        (256, 64, "True", 3750.0),
        (128, 128, "False", 4560.0),
    ] {
        let settings = [
            format!("is_causal={causal}"),
            "heads=1".to_string(),
            "seq_len=1024".to_string(),
            "dim=128".to_string(),
            "dtype=bfloat16".to_string(),
            format!("block_M={queries}"),
            format!("block_N={keys}"),
            "threads=512".to_string(),
            "num_stages=2".to_string(),
        ];
        let last = (1024 / queries - 1).to_string();
        let options = ["--target", "gfx950", "--block", &last];
        let (busy, turn) = hot_loop("attention_fwd.py", &settings, &options);
        println!("{settings:?}: {turn}");
        assert_eq!(busy, 2048.0);
        assert!(turn <= most, "{settings:?}: {turn}");
    }
}

/// The loop along K is the hot one and not the loop over tiles around it, in which the last iterations of
/// the pipeline stand; and the way from one tile to the next is no iteration.
#[test]
fn the_hot_loop_of_resident_blocks_is_the_one_along_k() {
    let (busy, turn) = hot_loop("gemm_persistent.py", &[], &["--target", "gfx950"]);
    assert_eq!(busy, 64.0);
    assert!(turn <= 490.0, "{turn}");
}

/// The cycles of an iteration of an example's hot loop: those in which matrix units multiply, and all.
fn hot_loop(example: &str, settings: &[String], options: &[&str]) -> (f64, f64) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.arg("cycles").arg(examples.join(example));
    command.arg("--json").args(options);
    for setting in settings {
        command.args(["--set", setting]);
    }
    let output = command.output().expect("the command runs");
    assert!(output.status.success(), "{settings:?} {output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let cycles = |name: &str| report["hot_loop"][name].as_f64().expect("cycles");
    (cycles("matrix_cycles"), cycles("cycles"))
}
