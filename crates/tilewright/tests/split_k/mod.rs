//! Sums that are split along K over several blocks: what they compute is what the reference evaluator
//! says, for tiles that stick out of their tensors too, on every target.

use super::evaluated::{check_on, ramp};
use tilewright::ir::{DType, Target};

/// `C = A @ B.T` on tiles of 64 by `width`, over `trips` steps of 32.
struct Product {
    rows: i64,
    cols: i64,
    width: i64,
    depth: i64,
    trips: i64,
    stages: u32,
    order: &'static str,
    out: DType,
}

impl Product {
    fn check(&self, parts: i128) {
        self.check_on(&Target::ALL, parts);
    }

    fn check_on(&self, targets: &[Target], parts: i128) {
        let Product {
            rows,
            cols,
            width,
            depth,
            trips,
            stages,
            order,
            out,
        } = self;
        let tiles = |n: i64, of: i64| (n + of - 1) / of;
        let (across, down) = (tiles(*cols, *width), tiles(*rows, 64));
        let source = format!(
            "func @product level=tile {{
               param A: float16[{rows}, {depth}]
               param B: float16[{cols}, {depth}]
               output C: {out}[{rows}, {cols}]
               attr pass_config \"tilewright.split_k\" = true
               kernel grid(bx: {across}, by: {down}) threads(tx: 128, ty: 1, tz: 1) {order} {{
                 alloc a: shared float16[64, 32]
                 alloc b: shared float16[{width}, 32]
                 alloc c: fragment float32[64, {width}]
                 fill c[0 +: 64, 0 +: {width}], 0.0
                 for k in pipelined(0, {trips}) stages={stages} {{
                   copy A[by * 64 +: 64, k * 32 +: 32] -> a[0 +: 64, 0 +: 32]
                   copy B[bx * {width} +: {width}, k * 32 +: 32] -> b[0 +: {width}, 0 +: 32]
                   gemm a[0 +: 64, 0 +: 32], b[0 +: {width}, 0 +: 32] -> c[0 +: 64, 0 +: {width}] trans_b
                 }}
                 copy c[0 +: 64, 0 +: {width}] -> C[by * 64 +: 64, bx * {width} +: {width}]
               }}
             }}"
        );
        let inputs = [
            ("A", ramp(DType::F16, &[*rows, *depth])),
            ("B", ramp(DType::F16, &[*cols, *depth])),
            ("C", ramp(*out, &[*rows, *cols])),
        ];
        let made = check_on(targets, &source, &inputs, &["C"]);
        let made = made.unwrap_or_else(|why| panic!("{why}"));
        for func in made {
            let workspace = func.workspaces.first().map(|w| &func.buffers[*w].shape[0]);
            let made = workspace.map_or(Some(1), |parts| parts.as_int());
            assert_eq!(made, Some(parts), "{func}");
            assert_eq!(func.kernels.len(), if parts > 1 { 2 } else { 1 }, "{func}");
        }
    }
}

#[test]
fn tiles_that_stick_out() {
    let product = Product {
        rows: 100,
        cols: 93,
        width: 64,
        depth: 250,
        trips: 8,
        stages: 2,
        order: "",
        out: DType::F32,
    };
    product.check(8);
}

/// Rows that are a part of a tile, in an order of the kernel's.
#[test]
fn rows_of_a_third_tile() {
    let product = Product {
        rows: 130,
        cols: 256,
        width: 128,
        depth: 9 * 32,
        trips: 9,
        stages: 3,
        order: "swizzle=row(2)",
        out: DType::F16,
    };
    product.check(9);
}

/// Narrow tiles, of which a block of the second kernel adds many rows, and a last iteration that is
/// past the end of A and B.
#[test]
fn narrow_tiles() {
    let product = Product {
        rows: 64,
        cols: 70,
        width: 16,
        depth: 5 * 32 - 3,
        trips: 6,
        stages: 2,
        order: "",
        out: DType::F32,
    };
    product.check(6);
}

/// More iterations than the machines have multiprocessors for: each part has several.
#[test]
fn parts_of_several_iterations() {
    let product = Product {
        rows: 7 * 64 - 1,
        cols: 8 * 64,
        width: 64,
        depth: 128,
        trips: 4,
        stages: 2,
        order: "",
        out: DType::F32,
    };
    for (target, parts) in [(Target::Sm80, 1), (Target::Sm90a, 2), (Target::Gfx942, 4)] {
        product.check_on(&[target], parts);
    }
}
