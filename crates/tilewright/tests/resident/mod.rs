//! Blocks that stay on their multiprocessor and take several tiles, and blocks in an order of the
//! compiler's: what they compute is what the reference evaluator says, in whatever order the tiles are,
//! however many iterations a tile has.

use super::evaluated::{check_on, ramp};
use tilewright::ir::{DType, Target};

/// `C = A @ B.T` on tiles of 128 x 128, in an order of the tiles.
struct Product {
    rows: i64,
    cols: i64,
    depth: i64,
    stages: u32,
    order: &'static str,
    /// As many products of their own, where there are several.
    batch: i64,
    /// Whether blocks bring each other halves.
    pairs: bool,
}

impl Product {
    fn source(&self) -> String {
        let Product {
            rows,
            cols,
            depth,
            stages,
            order,
            batch,
            pairs,
        } = self;
        let tiles = |n: i64, of: i64| (n + of - 1) / of;
        let (across, down, trips) = (tiles(*cols, 128), tiles(*rows, 128), tiles(*depth, 64));
        format!(
            "func @product level=tile {{
               param A: bfloat16[{batch}, {rows}, {depth}]
               param B: bfloat16[{batch}, {cols}, {depth}]
               output C: bfloat16[{batch}, {rows}, {cols}]
               attr pass_config \"tilewright.pairs\" = {pairs}
               kernel grid(bx: {across}, by: {down}, bz: {batch}) threads(tx: 128, ty: 1, tz: 1) {order} {{
                 alloc a: shared bfloat16[128, 64]
                 alloc b: shared bfloat16[128, 64]
                 alloc c: fragment float32[128, 128]
                 fill c[0 +: 128, 0 +: 128], 0.0
                 for k in pipelined(0, {trips}) stages={stages} {{
                   copy A[bz, by * 128 +: 128, k * 64 +: 64] -> a[0 +: 128, 0 +: 64]
                   copy B[bz, bx * 128 +: 128, k * 64 +: 64] -> b[0 +: 128, 0 +: 64]
                   gemm a[0 +: 128, 0 +: 64], b[0 +: 128, 0 +: 64] -> c[0 +: 128, 0 +: 128] trans_b
                 }}
                 copy c[0 +: 128, 0 +: 128] -> C[bz, by * 128 +: 128, bx * 128 +: 128]
               }}
             }}"
        )
    }

    fn check(&self) {
        let Product {
            rows,
            cols,
            depth,
            batch,
            ..
        } = *self;
        let inputs = [
            ("A", ramp(DType::BF16, &[batch, rows, depth])),
            ("B", ramp(DType::BF16, &[batch, cols, depth])),
            ("C", ramp(DType::BF16, &[batch, rows, cols])),
        ];
        let made = check_on(&[Target::Sm90a], &self.source(), &inputs, &["C"]);
        let made = made.unwrap_or_else(|why| panic!("{why}"));
        let grid = &made[0].kernels[0].grid;
        assert_eq!((grid.len(), grid[0].1.as_int()), (1, Some(132)));
        let cluster = made[0].kernels[0].attrs.cluster;
        assert_eq!(cluster, self.pairs.then_some([2, 1, 1]));
    }
}

#[test]
fn one_iteration_a_tile() {
    let product = Product {
        rows: 1500,
        cols: 1544,
        depth: 64,
        stages: 2,
        order: "swizzle=row(5)",
        batch: 1,
        pairs: false,
    };
    product.check();
}

#[test]
fn phases_go_on_from_tile_to_tile() {
    let product = Product {
        rows: 1500,
        cols: 1544,
        depth: 320,
        stages: 3,
        order: "swizzle=column(4)",
        batch: 1,
        pairs: false,
    };
    product.check();
}

#[test]
fn tiles_of_several_products() {
    let product = Product {
        rows: 384,
        cols: 328,
        depth: 192,
        stages: 4,
        order: "",
        batch: 15,
        pairs: false,
    };
    product.check();
}

/// Pairs along rows, whose number is even, with phases that go on from tile to tile.
#[test]
fn pairs_that_stay() {
    let product = Product {
        rows: 1500,
        cols: 1672,
        depth: 320,
        stages: 3,
        order: "swizzle=column(4)",
        batch: 1,
        pairs: true,
    };
    product.check();
}

/// Only columns are even in number, and rows of tensors start inside of cache lines.
#[test]
fn pairs_along_the_other_axis() {
    let product = Product {
        rows: 360,
        cols: 232,
        depth: 200,
        stages: 2,
        order: "",
        batch: 23,
        pairs: true,
    };
    product.check();
}

/// The longest first, and masks that hide nothing of most tiles.
#[test]
fn scores_below_the_diagonal() {
    let source = "func @scores level=tile {
           param Q: float16[28, 300, 64]
           param K: float16[28, 300, 64]
           output O: float32[28, 300, 64]
           kernel grid(bx: 5, by: 28) threads(tx: 128, ty: 1, tz: 1) {
             alloc q: shared float16[64, 64]
             alloc k: shared float16[64, 64]
             alloc acc: fragment float32[64, 64]
             alloc total: fragment float32[64, 64]
             fill total[0 +: 64, 0 +: 64], 0.0
             copy Q[by, bx * 64 +: 64, 0 +: 64] -> q[0 +: 64, 0 +: 64]
             for t in pipelined(0, bx + 1) stages=2 {
               copy K[by, t * 64 +: 64, 0 +: 64] -> k[0 +: 64, 0 +: 64]
               for i, j in parallel(64, 64) {
                 acc[i, j] = if_then_else(t * 64 + j <= bx * 64 + i, 0.0, -inf)
               }
               gemm q[0 +: 64, 0 +: 64], k[0 +: 64, 0 +: 64] -> acc[0 +: 64, 0 +: 64] trans_b
               for i, j in parallel(64, 64) {
                 total[i, j] = max(total[i, j], acc[i, j])
               }
             }
             copy total[0 +: 64, 0 +: 64] -> O[by, bx * 64 +: 64, 0 +: 64]
           }
         }";
    let tensor = |dtype| ramp(dtype, &[28, 300, 64]);
    let inputs = [
        ("Q", tensor(DType::F16)),
        ("K", tensor(DType::F16)),
        ("O", tensor(DType::F32)),
    ];
    let made = check_on(&[Target::Sm90a], source, &inputs, &["O"]);
    let made = made.unwrap_or_else(|why| panic!("{why}"));
    let text = made[0].to_string();
    for part in ["grid(block: 140)", "4 - block // 28", "if t < bx {"] {
        assert!(text.contains(part), "no `{part}`:\n{text}");
    }
}
