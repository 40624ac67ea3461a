//! Matrix products: plain, transposed, split, persistent, batched, grouped, sparse, fp8, 4-bit
//! weights, and convolution, which is one over gathered patches.

use super::{Approx, BF16, Case, F16, F32, Fill, Inputs, Output, Sum, ceil_div};

/// `C[i, j] = sum over k of a(i, k) * b(k, j)`. Products of 16-bit and 8-bit floats are exact in f32;
/// only their sum is rounded.
pub fn matmul(
    (m, n, k): (usize, usize, usize),
    a: impl Fn(usize, usize) -> f64,
    b: impl Fn(usize, usize) -> f64,
) -> Vec<Approx> {
    let mut c = Vec::with_capacity(m * n);
    for i in 0..m {
        for j in 0..n {
            let sum: Sum = (0..k).map(|x| a(i, x) * b(x, j)).collect();
            c.push(sum.in_f32());
        }
    }
    c
}

/// Row-major `A (m, k)` times row-major `B (k, n)`.
fn matmul_plain((m, n, k): (usize, usize, usize), a: &[f64], b: &[f64]) -> Vec<Approx> {
    matmul((m, n, k), |i, x| a[i * k + x], |x, j| b[x * n + j])
}

/// The rows of `A`, one group below the other, each group times its own matrix of `B (groups, k, n)`.
pub fn grouped_matmul(sizes: &[usize], n: usize, k: usize, a: &[f64], b: &[f64]) -> Vec<Approx> {
    let mut c = Vec::new();
    let mut row = 0;
    for (g, &size) in sizes.iter().enumerate() {
        let (rows, weights) = (
            &a[row * k..(row + size) * k],
            &b[g * k * n..(g + 1) * k * n],
        );
        c.extend(matmul_plain((size, n, k), rows, weights));
        row += size;
    }
    c
}

/// `A (m, k)` times the transpose of `B (n, k)`, where both come with scales: one for each row and
/// column group of `A`, one for each square of `B`. Every scaled partial sum costs three roundings.
pub fn scaled_matmul(
    (m, n, k): (usize, usize, usize),
    group: usize,
    (a, b): (&[f64], &[f64]),
    (scale_a, scale_b): (&[f64], &[f64]),
) -> Vec<Approx> {
    let groups = ceil_div(k, group);
    let mut c = Vec::with_capacity(m * n);
    for i in 0..m {
        for j in 0..n {
            let sum: Sum = (0..groups)
                .map(|g| {
                    let end = k.min((g + 1) * group);
                    let part: Sum = (g * group..end)
                        .map(|x| a[i * k + x] * b[j * k + x])
                        .collect();
                    let scale = scale_a[i * groups + g] * scale_b[(j / group) * groups + g];
                    part.in_f32().times(Approx::relative(scale, 3.0 * F32))
                })
                .collect();
            c.push(sum.in_f32());
        }
    }
    c
}

/// Weights packed two to a byte, low half first, each half minus 8 times the scale of its group. The
/// second value is the product's relative error when the kernel keeps weights in 16 bits.
pub fn unpack_weights(
    (n, k, group): (usize, usize, usize),
    packed: &[f64],
    scales: &[f64],
) -> Vec<f64> {
    let groups = ceil_div(k, group);
    let mut weights = Vec::with_capacity(n * k);
    for row in 0..n {
        for column in 0..k {
            // A signed byte has the same bits as the unsigned one 256 above it.
            let byte = packed[row * (k / 2) + column / 2].rem_euclid(256.0) as u32;
            let half = if column % 2 == 0 {
                byte & 15
            } else {
                byte >> 4
            };
            weights.push((f64::from(half) - 8.0) * scales[row * groups + column / group]);
        }
    }
    weights
}

/// The sizes of a convolution over `(batch, height, width, channels)` images.
#[derive(Debug, Clone, Copy)]
pub struct Conv {
    pub batch: usize,
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    pub filters: usize,
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    pub pad: usize,
}

impl Conv {
    fn out_size(&self, size: usize) -> usize {
        (size + 2 * self.pad - self.dilation * (self.kernel - 1) - 1) / self.stride + 1
    }

    /// One pixel of one channel; zero outside the image.
    fn pixel(&self, data: &[f64], n: usize, y: isize, x: isize, c: usize) -> f64 {
        let (Ok(y), Ok(x)) = (usize::try_from(y), usize::try_from(x)) else {
            return 0.0;
        };
        if y >= self.height || x >= self.width {
            return 0.0;
        }
        data[((n * self.height + y) * self.width + x) * self.channels + c]
    }

    pub fn apply(&self, data: &[f64], weights: &[f64]) -> Vec<Approx> {
        let at = |out: usize, tap: usize| {
            (out * self.stride + tap * self.dilation) as isize - self.pad as isize
        };
        let mut result = Vec::new();
        for n in 0..self.batch {
            for y in 0..self.out_size(self.height) {
                for x in 0..self.out_size(self.width) {
                    for f in 0..self.filters {
                        let mut sum = Sum::default();
                        for r in 0..self.kernel {
                            for s in 0..self.kernel {
                                for c in 0..self.channels {
                                    let tap = ((r * self.kernel + s) * self.channels + c)
                                        * self.filters
                                        + f;
                                    sum.add(
                                        self.pixel(data, n, at(y, r), at(x, s), c) * weights[tap],
                                    );
                                }
                            }
                        }
                        result.push(sum.in_f32());
                    }
                }
            }
        }
        result
    }
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // All four transposes, once with whole tiles and once with every size ragged.
    for (trans_a, trans_b) in [(false, false), (false, true), (true, false), (true, true)] {
        for (m, n, k) in [(64, 64, 64), (70, 45, 50)] {
            let tiles = gemm_tiles(Case::new("gemm.py", "matmul"));
            let case = tiles.flag("trans_A", trans_a).flag("trans_B", trans_b);
            let a_shape = if trans_a { [k, m] } else { [m, k] };
            let b_shape = if trans_b { [n, k] } else { [k, n] };
            cases.push(
                case.sizes([("M", m), ("N", n), ("K", k)])
                    .input("A", a_shape, Fill::Uniform(-1.0, 1.0))
                    .input("B", b_shape, Fill::Uniform(-1.0, 1.0))
                    .check(move |t| {
                        let (a, b) = (t.get("A"), t.get("B"));
                        let a =
                            |i: usize, x: usize| if trans_a { a[x * m + i] } else { a[i * k + x] };
                        let b =
                            |x: usize, j: usize| if trans_b { b[j * k + x] } else { b[x * n + j] };
                        vec![Output::new("C", matmul((m, n, k), a, b), F16)]
                    }),
            );
        }
    }
    // The tiles of the defaults, but one tile of output.
    cases.push(plain(Case::new("gemm.py", "matmul"), (128, 128, 64), F16));
    // Enough of them for pairs of blocks.
    cases.push(plain(Case::new("gemm.py", "matmul"), (256, 512, 96), F16));
    cases.push(plain(
        gemm_tiles(Case::new("gemm.py", "matmul")).set("dtype", "bfloat16"),
        (48, 40, 72),
        BF16,
    ));
    cases.push(plain(
        gemm_tiles(Case::new("gemm.py", "matmul")).set("dtype", "float32"),
        (40, 33, 37),
        F32,
    ));
    cases.push(tf32_gemm((256, 128, 64)));
    cases.push(tf32_gemm((70, 44, 36)));
    cases.push(integer_gemm());
    cases.push(relu_gemm((64, 64, 64)));
    cases.push(relu_gemm((50, 70, 33)));
    cases.push(relu_gemm((17, 129, 65)));

    for size in [(64, 64, 64), (90, 70, 50), (33, 65, 97), (130, 128, 72)] {
        // M stays symbolic here; its value comes with the tensors.
        let (m, n, k) = size;
        let dynamic =
            Case::new("gemm_dynamic.py", "matmul_dynamic").sizes([("m", m), ("N", n), ("K", k)]);
        cases.push(with_operands(dynamic, size, F16));
        let all = Case::new("gemm_dynamic.py", "matmul_dynamic_mnk").sizes([
            ("m", m),
            ("n", n),
            ("k", k),
        ]);
        cases.push(with_operands(all, size, F16));
        cases.push(plain(
            Case::new("gemm_dynamic.py", "matmul_dynamic"),
            size,
            F16,
        ));
    }
    for (size, split) in [((64, 64, 256), 4), ((70, 50, 200), 3), ((64, 64, 64), 8)] {
        cases.push(plain(
            Case::new("gemm_splitk.py", "matmul_splitk").set("split_k", split),
            size,
            F32,
        ));
    }
    for (size, blocks) in [((192, 128, 64), 3), ((200, 150, 72), 4), ((64, 64, 32), 6)] {
        for kernel in ["matmul_persistent", "matmul_waves"] {
            cases.push(plain(
                Case::new("gemm_persistent.py", kernel).set("num_blocks", blocks),
                size,
                F16,
            ));
        }
        cases.push(plain(
            Case::new("gemm_streamk.py", "matmul_streamk").set("num_blocks", blocks),
            size,
            F32,
        ));
    }
    for size in [(128, 64, 128), (100, 90, 70), (64, 64, 32)] {
        cases.push(plain(
            Case::new("warp_specialized_gemm.py", "matmul_warp_specialized"),
            size,
            F16,
        ));
    }
    // Rows of a multiple of 16 bytes.
    for size in [(128, 128, 64), (200, 136, 328), (72, 256, 456)] {
        let case = Case::new("warp_specialized_tma_gemm.py", "matmul_tma");
        cases.push(plain(case.with_bulk_copies(), size, F16));
    }
    for size in [(128, 128, 64), (200, 136, 328), (72, 256, 456)] {
        let case = Case::new("tma_descriptor_gemm.py", "matmul_descriptors");
        cases.push(plain(case.with_bulk_copies(), size, F16));
    }
    cases.extend([
        fp8((64, 64, 192), "float8_e4m3fn"),
        fp8((70, 50, 100), "float8_e5m2"),
        fp8((16, 129, 65), "float8_e4m3fn"),
    ]);
    cases.extend([
        fp8_scaled((64, 64, 256)),
        fp8_scaled((50, 150, 200)),
        fp8_scaled((33, 65, 129)),
    ]);
    cases.extend([
        fp8_fast((64, 128, 256), "float8_e4m3fn"),
        fp8_fast((70, 50, 100), "float8_e5m2"),
        fp8_fast((129, 16, 65), "float8_e4m3fn"),
    ]);
    cases.extend([
        blockwise((256, 128, 384), 256),
        blockwise((150, 130, 200), 128),
        blockwise((33, 65, 129), 64),
    ]);
    cases.extend([
        blockscaled((128, 64, 256), "float8_e4m3fn", 128),
        blockscaled((64, 136, 384), "float4_e2m1fn", 128),
        blockscaled((33, 65, 192), "float8_e5m2", 64),
        blockscaled((64, 136, 256), "float6_e2m3fn", 128),
        blockscaled((33, 65, 192), "float6_e3m2fn", 64),
        // No instruction has so little of K.
        blockscaled((40, 24, 96), "float4_e2m1fn", 32),
    ]);
    cases.extend([
        grouped_fp8(&[64, 76], 128, 256),
        grouped_fp8(&[5, 0, 70, 61], 144, 200),
        grouped_fp8(&[10], 20, 30),
    ]);
    cases.extend([
        moe(&[100, 0, 64], 128, (128, 256)),
        moe(&[130, 5], 136, (144, 208)),
        moe(&[33], 33, (65, 129)),
    ]);
    cases.extend([
        batched(2, (64, 64, 64)),
        batched(3, (70, 50, 45)),
        batched(1, (33, 65, 97)),
    ]);
    cases.extend([
        batched_shared_b(2, (64, 64, 64)),
        batched_shared_b(3, (70, 50, 45)),
        batched_shared_b(2, (33, 65, 17)),
    ]);
    cases.extend([
        grouped(&[63, 77], 64, 64),
        grouped(&[5, 0, 70, 64], 50, 40),
        grouped(&[10], 20, 30),
    ]);
    cases.extend([
        ragged(&[63, 77], 64, 64),
        ragged(&[5, 0, 70, 64], 50, 40),
        ragged(&[1, 33, 32], 65, 33),
    ]);
    cases.extend([
        blocksparse((128, 128, 96), Fill::Integers(0, 1)),
        blocksparse((100, 90, 70), Fill::Integers(0, 1)),
        blocksparse((65, 129, 33), Fill::Integers(0, 1)),
    ]);
    cases.extend([
        dequant((64, 64, 128), "uint8"),
        dequant((50, 70, 90), "uint8"),
        dequant((40, 30, 64), "int8"),
    ]);
    cases.extend(conv_cases());
    cases
}

pub fn long_cases() -> Vec<Case> {
    let size = (50, 40, 150);
    let (m, n, k) = size;
    let dynamic =
        Case::new("gemm_dynamic.py", "matmul_dynamic").sizes([("m", m), ("N", n), ("K", k)]);
    let dynamic_mnk = Case::new("gemm_dynamic.py", "matmul_dynamic_mnk");
    let persistent = |kernel| {
        plain(
            Case::new("gemm_persistent.py", kernel).set("num_blocks", 2),
            (70, 120, 160),
            F16,
        )
    };
    let mut cases = vec![
        plain(
            gemm_tiles(Case::new("gemm.py", "matmul")),
            (32, 30, 80),
            F16,
        ),
        relu_gemm(size),
        with_operands(dynamic, size, F16),
        with_operands(dynamic_mnk.sizes([("m", m), ("n", n), ("k", k)]), size, F16),
        plain(
            Case::new("gemm_splitk.py", "matmul_splitk").set("split_k", 2),
            (50, 40, 310),
            F32,
        ),
        persistent("matmul_persistent"),
        persistent("matmul_waves"),
        plain(
            Case::new("gemm_streamk.py", "matmul_streamk").set("num_blocks", 2),
            (64, 100, 192),
            F32,
        ),
        fp8((32, 40, 320), "float8_e4m3fn"),
        fp8_scaled((32, 40, 640)),
        fp8_fast((32, 40, 640), "float8_e4m3fn"),
        blockwise((32, 40, 640), 64),
        blockscaled((32, 40, 640), "float8_e4m3fn", 128),
        grouped_fp8(&[40], 40, 640),
        moe(&[56], 56, (40, 640)),
        batched(1, size),
        batched_shared_b(1, size),
        grouped(&[40], 40, 150),
        ragged(&[40, 20], 40, 150),
        long_blocksparse(),
        dequant((40, 30, 320), "uint8"),
    ];
    cases.extend(conv_cases().into_iter().take(1));
    cases
}

/// Tiles small enough that several fit into a small problem.
fn gemm_tiles(case: Case) -> Case {
    case.sizes([
        ("block_M", 32),
        ("block_N", 32),
        ("block_K", 16),
        ("num_stages", 2),
    ])
}

/// A case whose operands and output are the plain row-major ones, with sizes named M, N and K.
fn plain(case: Case, (m, n, k): (usize, usize, usize), rounding: f64) -> Case {
    with_operands(
        case.sizes([("M", m), ("N", n), ("K", k)]),
        (m, n, k),
        rounding,
    )
}

fn with_operands(case: Case, (m, n, k): (usize, usize, usize), rounding: f64) -> Case {
    case.input("A", [m, k], Fill::Uniform(-1.0, 1.0))
        .input("B", [k, n], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            vec![Output::new(
                "C",
                matmul_plain((m, n, k), t.get("A"), t.get("B")),
                rounding,
            )]
        })
}

/// Integers small enough that nothing wraps, so the result is exact.
/// Warp groups multiply it where they take the tiles. tf32 has as many fraction bits as float16.
fn tf32_gemm((m, n, k): (usize, usize, usize)) -> Case {
    Case::new("gemm.py", "matmul")
        .set("dtype", "tfloat32")
        .flag("trans_B", true)
        .sizes([("M", m), ("N", n), ("K", k)])
        .input("A", [m, k], Fill::Uniform(-1.0, 1.0))
        .input("B", [n, k], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            let (a, b) = (t.get("A"), t.get("B"));
            let c = matmul((m, n, k), |i, x| a[i * k + x], |x, j| b[j * k + x]);
            vec![Output::new("C", c, F16)]
        })
}

fn integer_gemm() -> Case {
    let (m, n, k) = (40, 33, 24);
    gemm_tiles(Case::new("gemm.py", "matmul"))
        .set("dtype", "int8")
        .set("accum_dtype", "int32")
        .sizes([("M", m), ("N", n), ("K", k)])
        .input("A", [m, k], Fill::Integers(-2, 2))
        .input("B", [k, n], Fill::Integers(-2, 2))
        .check(move |t| {
            let product = matmul_plain((m, n, k), t.get("A"), t.get("B"));
            vec![Output::exact(
                "C",
                product.iter().map(|e| e.value).collect(),
            )]
        })
}

fn relu_gemm((m, n, k): (usize, usize, usize)) -> Case {
    Case::new("gemm.py", "matmul_relu")
        .sizes([("M", m), ("N", n), ("K", k)])
        .input("A", [m, k], Fill::Uniform(-1.0, 1.0))
        .input("B", [k, n], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            let product = matmul_plain((m, n, k), t.get("A"), t.get("B"));
            let relu = product.into_iter().map(|e| Approx {
                value: e.value.max(0.0),
                ..e
            });
            vec![Output::new("C", relu.collect(), F16)]
        })
}

/// Two accumulators instead of one only change the order of the additions.
fn fp8((m, n, k): (usize, usize, usize), dtype: &'static str) -> Case {
    Case::new("gemm_fp8.py", "matmul_fp8")
        .sizes([("M", m), ("N", n), ("K", k)])
        .set("dtype", dtype)
        .input("A", [m, k], Fill::Uniform(-1.0, 1.0))
        .input("B", [n, k], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            let (a, b) = (t.get("A"), t.get("B"));
            vec![Output::new(
                "C",
                matmul((m, n, k), |i, x| a[i * k + x], |x, j| b[j * k + x]),
                F32,
            )]
        })
}

fn fp8_scaled((m, n, k): (usize, usize, usize)) -> Case {
    let group = 128;
    Case::new("gemm_fp8.py", "matmul_fp8_scaled")
        .sizes([("M", m), ("N", n), ("K", k)])
        .input("A", [m, k], Fill::Uniform(-200.0, 200.0))
        .input("B", [n, k], Fill::Uniform(-200.0, 200.0))
        .input(
            "scale_A",
            [m, ceil_div(k, group)],
            Fill::Uniform(0.001, 0.01),
        )
        .input(
            "scale_B",
            [ceil_div(n, group), ceil_div(k, group)],
            Fill::Uniform(0.001, 0.01),
        )
        .check(move |t| {
            let scales = (t.get("scale_A"), t.get("scale_B"));
            let product = scaled_matmul((m, n, k), group, (t.get("A"), t.get("B")), scales);
            vec![Output::new("C", product, BF16)]
        })
}

fn fp8_fast((m, n, k): (usize, usize, usize), dtype: &'static str) -> Case {
    Case::new("gemm_fp8.py", "matmul_fp8_fast")
        .sizes([("M", m), ("N", n), ("K", k)])
        .set("dtype", dtype)
        .input("A", [m, k], Fill::Uniform(-1.0, 1.0))
        .input("B", [n, k], Fill::Uniform(-1.0, 1.0))
        .input("scale_A", [1], Fill::Uniform(0.5, 1.5))
        .input("scale_B", [1], Fill::Uniform(0.5, 1.5))
        .check(move |t| {
            let (a, b) = (t.get("A"), t.get("B"));
            let scale = Approx::relative(t.get("scale_A")[0] * t.get("scale_B")[0], 2.0 * F32);
            let product = matmul((m, n, k), |i, x| a[i * k + x], |x, j| b[j * k + x]);
            let scaled = product.into_iter().map(|c| c.times(scale));
            vec![Output::new("C", scaled.collect(), BF16)]
        })
}

/// Elements that one scale is for, along K and N.
const BLOCK: usize = 128;

/// Scales of rows as [`scaled_matmul`] takes them, of scales that lie with the rows along M.
fn by_row(scales: &[f64], rows: usize) -> Vec<f64> {
    let groups = scales.len() / rows.max(1);
    let at = |i: usize| scales[i % groups * rows + i / groups];
    (0..scales.len()).map(at).collect()
}

fn blockwise((m, n, k): (usize, usize, usize), block_m: usize) -> Case {
    let (groups_n, groups_k) = (ceil_div(n, BLOCK), ceil_div(k, BLOCK));
    Case::new("fp8_gemm_blockwise.py", "matmul_blockwise")
        .sizes([("M", m), ("N", n), ("K", k), ("block_M", block_m)])
        .input("A", [m, k], Fill::Uniform(-200.0, 200.0))
        .input("B", [n, k], Fill::Uniform(-200.0, 200.0))
        .input("scale_A", [groups_k, m], Fill::Uniform(0.001, 0.01))
        .input("scale_B", [groups_n, groups_k], Fill::Uniform(0.001, 0.01))
        .check(move |t| {
            let rows = by_row(t.get("scale_A"), m);
            let scales = (&rows[..], t.get("scale_B"));
            let product = scaled_matmul((m, n, k), BLOCK, (t.get("A"), t.get("B")), scales);
            vec![Output::new("C", product, BF16)]
        })
}

/// Powers of two times elements are exact, so only the sum is rounded.
fn blockscaled((m, n, k): (usize, usize, usize), dtype: &'static str, block_k: usize) -> Case {
    let group = 32;
    let runs = k / group;
    Case::new("gemm_blockscaled.py", "matmul_blockscaled")
        .sizes([("M", m), ("N", n), ("K", k), ("block_K", block_k)])
        .set("dtype", dtype)
        .input("A", [m, k], Fill::Uniform(-4.0, 4.0))
        .input("B", [n, k], Fill::Uniform(-4.0, 4.0))
        .input("scale_A", [m, runs], Fill::Uniform(0.1, 4.0))
        .input("scale_B", [n, runs], Fill::Uniform(0.1, 4.0))
        .check(move |t| {
            let scaled = |of: &str, by: &str| -> Vec<f64> {
                let (elements, scales) = (t.get(of), t.get(by));
                let pairs = elements.iter().enumerate();
                pairs.map(|(at, e)| e * scales[at / group]).collect()
            };
            let (a, b) = (scaled("A", "scale_A"), scaled("B", "scale_B"));
            let product = matmul((m, n, k), |i, x| a[i * k + x], |x, j| b[j * k + x]);
            vec![Output::new("C", product, BF16)]
        })
}

fn grouped_fp8(sizes: &'static [usize], n: usize, k: usize) -> Case {
    let rows: usize = sizes.iter().sum();
    let tuple: String = sizes.iter().map(|size| format!("{size}, ")).collect();
    let (groups_n, groups_k) = (ceil_div(n, BLOCK), ceil_div(k, BLOCK));
    Case::new("grouped_gemm_fp8.py", "grouped_matmul_fp8")
        .set("group_sizes", format!("({tuple})"))
        .sizes([("N", n), ("K", k), ("block_M", 64)])
        .input("A", [rows, k], Fill::Uniform(-200.0, 200.0))
        .input("B", [sizes.len(), n, k], Fill::Uniform(-200.0, 200.0))
        .input("scale_A", [groups_k, rows], Fill::Uniform(0.001, 0.01))
        .input(
            "scale_B",
            [sizes.len(), groups_n, groups_k],
            Fill::Uniform(0.001, 0.01),
        )
        .check(move |t| {
            let (a, b, squares) = (t.get("A"), t.get("B"), t.get("scale_B"));
            let scales = by_row(t.get("scale_A"), rows);
            let (mut c, mut row) = (Vec::new(), 0);
            for (g, &size) in sizes.iter().enumerate() {
                let own = row..row + size;
                c.extend(scaled_matmul(
                    (size, n, k),
                    BLOCK,
                    (
                        &a[own.start * k..own.end * k],
                        &b[g * n * k..(g + 1) * n * k],
                    ),
                    (
                        &scales[own.start * groups_k..own.end * groups_k],
                        &squares[g * groups_n * groups_k..(g + 1) * groups_n * groups_k],
                    ),
                ));
                row += size;
            }
            vec![Output::new("C", c, BF16)]
        })
}

/// Rows past an expert's count keep what they hold.
fn moe(counts: &'static [usize], capacity: usize, (n, k): (usize, usize)) -> Case {
    let experts = counts.len();
    let (groups_n, groups_k) = (ceil_div(n, BLOCK), ceil_div(k, BLOCK));
    let valid = counts.iter().map(|c| *c as f64).collect();
    Case::new("moe_gemm.py", "moe_matmul")
        .sizes([("experts", experts), ("capacity", capacity)])
        .sizes([("N", n), ("K", k), ("block_M", 64)])
        .input("A", [experts, capacity, k], Fill::Uniform(-200.0, 200.0))
        .input("B", [experts, n, k], Fill::Uniform(-200.0, 200.0))
        .input(
            "scale_A",
            [experts, groups_k, capacity],
            Fill::Uniform(0.001, 0.01),
        )
        .input(
            "scale_B",
            [experts, groups_n, groups_k],
            Fill::Uniform(0.001, 0.01),
        )
        .input("counts", [experts], Fill::Given(valid))
        .input("C", [experts, capacity, n], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            let (rows, squares) = (groups_k * capacity, groups_n * groups_k);
            let mut c = Vec::new();
            for (e, &count) in counts.iter().enumerate() {
                let part = |name: &str, size: usize| &t.get(name)[e * size..(e + 1) * size];
                let scales = by_row(part("scale_A", rows), capacity);
                let product = scaled_matmul(
                    (count, n, k),
                    BLOCK,
                    (part("A", capacity * k), part("B", n * k)),
                    (&scales, part("scale_B", squares)),
                );
                c.extend(product);
                let kept = &part("C", capacity * n)[count * n..];
                c.extend(kept.iter().map(|v| Approx::exact(*v)));
            }
            vec![Output::new("C", c, BF16)]
        })
}

fn batched(batch: usize, (m, n, k): (usize, usize, usize)) -> Case {
    Case::new("batched_gemm.py", "batched_matmul")
        .sizes([("batch", batch), ("M", m), ("N", n), ("K", k)])
        .input("A", [batch, m, k], Fill::Uniform(-1.0, 1.0))
        .input("B", [batch, k, n], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            let (a, b) = (t.get("A").chunks(m * k), t.get("B").chunks(k * n));
            let product = a.zip(b).flat_map(|(a, b)| matmul_plain((m, n, k), a, b));
            vec![Output::new("C", product.collect(), F16)]
        })
}

fn batched_shared_b(batch: usize, (m, n, k): (usize, usize, usize)) -> Case {
    Case::new("batched_gemm.py", "batched_matmul_shared_b")
        .sizes([("batch", batch), ("M", m), ("N", n), ("K", k)])
        .input("A", [batch, m, k], Fill::Uniform(-1.0, 1.0))
        .input("B", [k, n], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            // One B for all: the batch is nothing but more rows.
            vec![Output::new(
                "C",
                matmul_plain((batch * m, n, k), t.get("A"), t.get("B")),
                F16,
            )]
        })
}

fn grouped(sizes: &'static [usize], n: usize, k: usize) -> Case {
    let rows = sizes.iter().sum();
    let tuple: String = sizes.iter().map(|size| format!("{size}, ")).collect();
    Case::new("grouped_gemm.py", "grouped_matmul")
        .set("group_sizes", format!("({tuple})"))
        .sizes([("N", n), ("K", k), ("block_M", 32)])
        .input("A", [rows, k], Fill::Uniform(-1.0, 1.0))
        .input("B", [sizes.len(), k, n], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            vec![Output::new(
                "C",
                grouped_matmul(sizes, n, k, t.get("A"), t.get("B")),
                F16,
            )]
        })
}

fn ragged(sizes: &'static [usize], n: usize, k: usize) -> Case {
    let rows = sizes.iter().sum();
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let offsets = (0..=sizes.len())
        .map(|g| sizes[..g].iter().sum::<usize>() as f64)
        .collect();
    Case::new("grouped_gemm.py", "grouped_matmul_ragged")
        .sizes([
            ("rows", rows),
            ("groups", sizes.len()),
            ("N", n),
            ("K", k),
            ("max_group", largest),
            ("block_M", 32),
        ])
        .input("A", [rows, k], Fill::Uniform(-1.0, 1.0))
        .input("B", [sizes.len(), k, n], Fill::Uniform(-1.0, 1.0))
        .input("offsets", [sizes.len() + 1], Fill::Given(offsets))
        .check(move |t| {
            vec![Output::new(
                "C",
                grouped_matmul(sizes, n, k, t.get("A"), t.get("B")),
                F16,
            )]
        })
}

/// Four blocks of C with six depth blocks each. What a wait is needed for may happen only where a
/// depth block is skipped and the next one is not, so one block keeps all of them and the others
/// skip in turns.
fn long_blocksparse() -> Case {
    let kept = ["111111", "101010", "010101", "110011"].concat();
    let mask = kept.chars().map(|c| f64::from(u8::from(c == '1')));
    blocksparse((128, 128, 192), Fill::Given(mask.collect()))
}

fn blocksparse((m, n, k): (usize, usize, usize), mask: Fill) -> Case {
    let (block_m, block_n, block_k) = (64, 64, 32);
    let blocks = [
        ceil_div(m, block_m),
        ceil_div(n, block_n),
        ceil_div(k, block_k),
    ];
    Case::new("blocksparse_gemm.py", "blocksparse_matmul")
        .sizes([("M", m), ("N", n), ("K", k)])
        .input("A", [m, k], Fill::Uniform(-1.0, 1.0))
        .input("B", [k, n], Fill::Uniform(-1.0, 1.0))
        .input("mask", blocks, mask)
        .check(move |t: &Inputs| {
            let (a, b, mask) = (t.get("A"), t.get("B"), t.get("mask"));
            let mut c = Vec::with_capacity(m * n);
            for i in 0..m {
                for j in 0..n {
                    let block = (i / block_m * blocks[1] + j / block_n) * blocks[2];
                    let kept = (0..k).filter(|x| mask[block + x / block_k] != 0.0);
                    let sum: Sum = kept.map(|x| a[i * k + x] * b[x * n + j]).collect();
                    c.push(sum.in_f32());
                }
            }
            vec![Output::new("C", c, F16)]
        })
}

/// Weights are stored as an f16 tile before the product, so each carries one rounding to f16.
fn dequant((m, n, k): (usize, usize, usize), storage: &'static str) -> Case {
    let group = 32;
    let bytes = if storage == "int8" {
        Fill::Integers(-128, 127)
    } else {
        Fill::Integers(0, 255)
    };
    Case::new("dequant_gemm.py", "dequant_matmul")
        .sizes([("M", m), ("N", n), ("K", k)])
        .set("storage_dtype", storage)
        .input("A", [m, k], Fill::Uniform(-1.0, 1.0))
        .input("B", [n, k / 2], bytes)
        .input("scales", [n, ceil_div(k, group)], Fill::Uniform(0.01, 0.1))
        .check(move |t| {
            let a = t.get("A");
            let weights = unpack_weights((n, k, group), t.get("B"), t.get("scales"));
            let mut c = Vec::with_capacity(m * n);
            for i in 0..m {
                for j in 0..n {
                    let term = |x: usize| {
                        Approx::exact(a[i * k + x]).times(Approx::relative(weights[j * k + x], F16))
                    };
                    let sum: Sum = (0..k).map(term).collect();
                    c.push(sum.in_f32());
                }
            }
            vec![Output::new("C", c, F16)]
        })
}

fn conv_cases() -> Vec<Case> {
    let even = Conv {
        batch: 1,
        height: 8,
        width: 8,
        channels: 16,
        filters: 32,
        kernel: 3,
        stride: 1,
        dilation: 1,
        pad: 1,
    };
    let odd = Conv {
        batch: 2,
        height: 9,
        width: 7,
        channels: 5,
        filters: 11,
        stride: 2,
        ..even
    };
    let dilated = Conv {
        batch: 1,
        height: 10,
        width: 11,
        channels: 3,
        filters: 4,
        dilation: 2,
        pad: 2,
        ..even
    };
    let pointwise = Conv {
        kernel: 1,
        pad: 0,
        channels: 20,
        filters: 9,
        ..even
    };
    [even, odd, dilated, pointwise].map(convolution).into()
}

fn convolution(conv: Conv) -> Case {
    Case::new("convolution.py", "convolution")
        .sizes([
            ("batch", conv.batch),
            ("H", conv.height),
            ("W", conv.width),
            ("C", conv.channels),
        ])
        .sizes([
            ("F", conv.filters),
            ("kernel", conv.kernel),
            ("stride", conv.stride),
        ])
        .sizes([
            ("dilation", conv.dilation),
            ("pad", conv.pad),
            ("block_M", 32),
            ("block_N", 32),
        ])
        .input(
            "data",
            [conv.batch, conv.height, conv.width, conv.channels],
            Fill::Uniform(-1.0, 1.0),
        )
        .input(
            "weights",
            [conv.kernel, conv.kernel, conv.channels, conv.filters],
            Fill::Uniform(-1.0, 1.0),
        )
        .check(move |t| {
            vec![Output::new(
                "out",
                conv.apply(t.get("data"), t.get("weights")),
                F16,
            )]
        })
}
