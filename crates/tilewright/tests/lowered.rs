//! Small kernels, lowered for every target, against the reference evaluator: the sizes and the
//! values at which vectors, segments and folds go wrong first.

use tilewright::ir::{
    DType, Func, MicroKind, SourceMap, StmtKind, Target, ThreadOp, text, verify, visit,
};
use tilewright::passes::driver::{self, Options};
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{self, Arg, Args, HostTensor, RunOptions};

fn parse(source: &str) -> Func {
    let mut sources = SourceMap::new();
    let file = sources.add("kernel.tw", source);
    let func = text::parse(source, file).expect("it parses");
    verify::verify(&func).expect("it is sound");
    func
}

fn lower(func: &Func, target: Target) -> Func {
    let mut func = func.clone();
    let ran = driver::run(&mut func, target, &Options::default());
    assert!(ran.is_ok(), "{target}: {ran:?}\n{func}");
    func
}

/// The named tensors after the kernel has run on X, by the evaluator and by every target.
fn check(func: &Func, x: &HostTensor, others: &[(&str, HostTensor)], output: &str) {
    let args = || {
        let mut args = Args::new().with("X", Arg::Tensor(x.clone()));
        for (name, tensor) in others {
            args.insert(*name, Arg::Tensor(tensor.clone()));
        }
        args
    };
    let mut expected = args();
    sim::run(func, &mut expected, &RunOptions::default()).expect("the evaluator runs it");
    let expected = expected.tensor(output).expect("an output").to_f64();
    for target in Target::ALL {
        let lowered = lower(func, target);
        for seed in 0..3 {
            let options = SimtOptions {
                seed,
                ..SimtOptions::default()
            };
            let mut found = args();
            let report = simt::run(&lowered, target, &mut found, &options).expect("it runs");
            assert!(
                report.is_clean(),
                "{target}: {:?}\n{lowered}",
                report.diagnostics()
            );
            let found = found.tensor(output).expect("an output").to_f64();
            for (at, (a, b)) in expected.iter().zip(&found).enumerate() {
                // Sums are made in another order; everything else is the same.
                let close = (a - b).abs() <= 1e-5 * a.abs().max(1.0);
                assert!(
                    close || a == b || (a.is_nan() && b.is_nan()),
                    "{target}, element {at}: {b} instead of {a}\n{lowered}"
                );
            }
        }
    }
}

fn ramp(dtype: tilewright::ir::DType, shape: &[usize]) -> HostTensor {
    let values: Vec<f64> = (0..shape.iter().product())
        .map(|n: usize| ((n * 37) % 101) as f64 - 50.0)
        .collect();
    HostTensor::from_f64(dtype, shape, &values).expect("as many values as elements")
}

/// The widest access of global memory, in bytes.
fn widest(func: &Func) -> u32 {
    let mut widest = 0;
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            let StmtKind::Micro(m) = &stmt.kind else {
                return;
            };
            let buffer = match m.kind {
                MicroKind::G2r | MicroKind::G2s => m.sources[0].region.buffer,
                MicroKind::R2g => m.dest.region.buffer,
                _ => return,
            };
            widest = widest.max(m.width * func.buffers[buffer].dtype.bits() / 8);
        });
    }
    widest
}

fn any_length(dtype: &str) -> Func {
    parse(&format!(
        "func @f level=tile {{
           symbol n: int32
           param X: {dtype}[n]
           output Y: {dtype}[n]
           kernel grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {{
             for i in parallel(n) {{
               Y[i] = X[i] + X[i]
             }}
           }}
         }}"
    ))
}

#[test]
fn a_dynamic_loop_takes_whole_vectors_and_a_rest() {
    for dtype in ["float32", "float16"] {
        let func = any_length(dtype);
        for target in Target::ALL {
            assert_eq!(widest(&lower(&func, target)), 16, "{target} {dtype}");
        }
        let dtype = func.buffers.values().next().expect("a buffer").dtype;
        for n in [1, 3, 4, 8, 63, 64, 65, 257, 512, 1000, 1001] {
            check(&func, &ramp(dtype, &[n]), &[], "Y");
        }
    }
}

#[test]
fn rows_of_any_length_are_checked_before_vectors() {
    let func = parse(
        "func @f level=tile {
           symbol n: int32
           param X: float16[6, n]
           output Y: float32[6, n]
           kernel grid(bx: (n + 63) // 64, by: 3) threads(tx: 32, ty: 1, tz: 1) {
             alloc x: fragment float16[2, 64]
             copy X[by * 2 +: 2, bx * 64 +: 64] -> x[0 +: 2, 0 +: 64]
             for i, j in parallel(2, 64) {
               Y[by * 2 + i, bx * 64 + j] = float32(x[i, j]) + float32(X[by * 2 + i, bx * 64 + j])
             }
           }
         }",
    );
    for target in Target::ALL {
        let lowered = lower(&func, target);
        assert!(widest(&lowered) >= 8, "{target}\n{lowered}");
    }
    let dtype = func.buffers.values().next().expect("a buffer").dtype;
    for n in [1, 8, 60, 61, 62, 64, 100, 128, 136] {
        check(&func, &ramp(dtype, &[6, n]), &[], "Y");
    }
}

#[test]
fn vectors_end_where_rows_do() {
    for (n, width) in [(256, 16), (252, 8), (250, 4), (249, 2)] {
        let func = parse(&format!(
            "func @f level=tile {{
               param X: float16[4, {n}]
               output Y: float16[4, {n}]
               kernel grid(bx: 2, by: 4) threads(tx: 16, ty: 1, tz: 1) {{
                 for j in parallel(128) {{
                   Y[by, bx * 128 + j] = X[by, bx * 128 + j] * 2.0:float16
                 }}
               }}
             }}"
        ));
        for target in Target::ALL {
            let found = widest(&lower(&func, target));
            let expected = if width == 2 { 0 } else { width };
            assert_eq!(found, expected, "{target} with rows of {n}");
        }
        let dtype = func.buffers.values().next().expect("a buffer").dtype;
        check(&func, &ramp(dtype, &[4, n]), &[], "Y");
    }
}

#[test]
fn a_tensor_of_any_length_has_vectors_before_its_end() {
    for n in ["n", "1000", "1001", "513"] {
        let func = parse(&format!(
            "func @f level=tile {{
               symbol n: int32
               param X: float16[n]
               param Z: float16[{n}]
               output Y: float16[{n}]
               kernel grid(bx: (n + 511) // 512) threads(tx: 64, ty: 1, tz: 1) {{
                 for j in parallel(512) {{
                   Y[bx * 512 + j] = Z[bx * 512 + j] * 2.0:float16 + 1.0:float16
                 }}
               }}
             }}"
        ));
        for target in Target::ALL {
            assert_eq!(widest(&lower(&func, target)), 16, "{target} {n}");
        }
        let dtype = func.buffers.values().next().expect("a buffer").dtype;
        let lengths: Vec<usize> = match n.parse() {
            Ok(n) => vec![n],
            Err(_) => vec![1, 8, 509, 512, 1023, 1024],
        };
        for n in lengths {
            let z = ramp(dtype, &[n]);
            check(&func, &ramp(dtype, &[n]), &[("Z", z)], "Y");
        }
    }
}

#[test]
fn an_update_in_place_and_a_shifted_read_stay_right() {
    let func = parse(
        "func @f level=tile {
           param X: float32[4, 64]
           param Z: float32[4, 64]
           kernel grid(bx: 4) threads(tx: 16, ty: 1, tz: 1) {
             for j in parallel(64) {
               Z[bx, j] = Z[bx, j] * 2.0 + X[bx, (j + 1) % 64]
             }
             for j in parallel(64) {
               if j % 3 == 0 {
                 Z[bx, j] = 0.0
               }
             }
           }
         }",
    );
    let dtype = func.buffers.values().next().expect("a buffer").dtype;
    let z = ramp(dtype, &[4, 64]);
    check(&func, &ramp(dtype, &[4, 64]), &[("Z", z)], "Z");
}

#[test]
fn scans_of_any_length_and_direction() {
    for (lines, length) in [
        (1, 1),
        (1, 1000),
        (3, 60),
        (4, 64),
        (7, 33),
        (200, 5),
        (2, 2),
    ] {
        for reverse in ["", " reverse"] {
            for kind in ["sum", "max"] {
                let func = parse(&format!(
                    "func @f level=tile {{
                       param X: float32[{lines}, {length}]
                       output Y: float32[{lines}, {length}]
                       kernel grid(bx: 1) threads(tx: 128, ty: 1, tz: 1) {{
                         alloc S: shared float32[{lines}, {length}]
                         copy X[0 +: {lines}, 0 +: {length}] -> S[0 +: {lines}, 0 +: {length}]
                         scan {kind} S[0 +: {lines}, 0 +: {length}] -> S[0 +: {lines}, 0 +: {length}] dim=1{reverse}
                         copy S[0 +: {lines}, 0 +: {length}] -> Y[0 +: {lines}, 0 +: {length}]
                       }}
                     }}"
                ));
                let dtype = func.buffers.values().next().expect("a buffer").dtype;
                check(&func, &ramp(dtype, &[lines, length]), &[], "Y");
            }
        }
    }
}

#[test]
fn nan_wins_or_loses_as_asked() {
    for dtype in ["float16", "bfloat16", "float32"] {
        for kind in ["max", "min", "absmax"] {
            for nan in ["", " nan_propagate"] {
                for scope in ["fragment", "shared"] {
                    let func = parse(&format!(
                        "func @f level=tile {{
                           param X: {dtype}[4, 96]
                           output Y: {dtype}[4]
                           kernel grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {{
                             alloc x: {scope} {dtype}[4, 96]
                             alloc m: fragment {dtype}[4]
                             copy X[0 +: 4, 0 +: 96] -> x[0 +: 4, 0 +: 96]
                             reduce {kind} x[0 +: 4, 0 +: 96] -> m[0 +: 4] dim=1 clear{nan}
                             copy m[0 +: 4] -> Y[0 +: 4]
                           }}
                         }}"
                    ));
                    let dtype = func.buffers.values().next().expect("a buffer").dtype;
                    let mut values = ramp(dtype, &[4, 96]).to_f64();
                    values[5] = f64::NAN;
                    values[96 + 95] = f64::NAN;
                    values[96 + 40] = f64::INFINITY;
                    values[2 * 96..3 * 96].fill(f64::NAN);
                    let x = HostTensor::from_f64(dtype, &[4, 96], &values).expect("values");
                    check(&func, &x, &[], "Y");
                }
            }
        }
    }
}

/// Two products in a row, the first one's result an operand of the second without leaving
/// registers: on the left, or on the right.
fn chained([m, n, k, d]: [usize; 4], dtype: &str, left: bool) -> Func {
    let (p_shape, v_shape, second) = match left {
        true => (
            [m, n],
            [n, d],
            format!("p[0 +: {m}, 0 +: {n}], v[0 +: {n}, 0 +: {d}]"),
        ),
        false => (
            [m, n],
            [d, m],
            format!("v[0 +: {d}, 0 +: {m}], p[0 +: {m}, 0 +: {n}]"),
        ),
    };
    let [rows, cols] = if left { [m, d] } else { [d, n] };
    let ([pm, pn], [vm, vn]) = (p_shape, v_shape);
    parse(&format!(
        "func @f level=tile {{
           param X: {dtype}[{m}, {k}]
           param W: {dtype}[{k}, {n}]
           param V: {dtype}[{vm}, {vn}]
           output Y: float32[{rows}, {cols}]
           kernel grid(bx: 1) threads(tx: 128, ty: 1, tz: 1) {{
             alloc x: shared {dtype}[{m}, {k}]
             alloc w: shared {dtype}[{k}, {n}]
             alloc v: shared {dtype}[{vm}, {vn}]
             alloc s: fragment float32[{m}, {n}]
             alloc p: fragment {dtype}[{pm}, {pn}]
             alloc o: fragment float32[{rows}, {cols}]
             copy X[0 +: {m}, 0 +: {k}] -> x[0 +: {m}, 0 +: {k}]
             copy W[0 +: {k}, 0 +: {n}] -> w[0 +: {k}, 0 +: {n}]
             copy V[0 +: {vm}, 0 +: {vn}] -> v[0 +: {vm}, 0 +: {vn}]
             gemm x[0 +: {m}, 0 +: {k}], w[0 +: {k}, 0 +: {n}] -> s[0 +: {m}, 0 +: {n}] clear=true
             copy s[0 +: {m}, 0 +: {n}] -> p[0 +: {m}, 0 +: {n}]
             for i, j in parallel({rows}, {cols}) {{
               o[i, j] = 1.0
             }}
             gemm {second} -> o[0 +: {rows}, 0 +: {cols}]
             copy o[0 +: {rows}, 0 +: {cols}] -> Y[0 +: {rows}, 0 +: {cols}]
           }}
         }}"
    ))
}

#[test]
fn products_of_fragments_have_any_size() {
    // Small integers: products of them are exact in every type here.
    let small = |dtype, shape: [usize; 2], step: usize| {
        let count = shape[0] * shape[1];
        let values: Vec<f64> = (0..count).map(|n| (n * step % 5) as f64 - 2.0).collect();
        HostTensor::from_f64(dtype, &shape, &values).expect("as many values as elements")
    };
    for sizes in [
        [64, 32, 16, 64],
        [40, 32, 24, 40],
        [40, 40, 24, 40],
        [72, 20, 24, 40],
        [100, 48, 24, 24],
        [128, 64, 8, 40],
        [8, 8, 8, 8],
    ] {
        for dtype in ["float16", "float32"] {
            for left in [true, false] {
                let func = chained(sizes, dtype, left);
                let [m, n, k, d] = sizes;
                let dtype = func.buffers.values().next().expect("a buffer").dtype;
                let v = if left { [n, d] } else { [d, m] };
                let others = [("W", small(dtype, [k, n], 7)), ("V", small(dtype, v, 3))];
                check(&func, &small(dtype, [m, k], 11), &others, "Y");
            }
        }
    }
}

/// How many elements each addition to several at once takes, and how many additions to one there
/// are in the text of a kernel.
fn additions(func: &Func) -> (Vec<u16>, usize) {
    let (mut lanes, mut single) = (Vec::new(), 0);
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| match &stmt.kind {
            StmtKind::Thread(ThreadOp::AtomicVecAdd { lanes: n, .. }) => lanes.push(*n),
            StmtKind::Thread(ThreadOp::AtomicRmw { .. }) => single += 1,
            _ => {}
        });
    }
    lanes.dedup();
    (lanes, single)
}

/// Two blocks add a tile of 8 by `cols` to a tensor with rows of `row`.
fn adding(scope: &str, dtype: &str, row: usize, cols: usize) -> Func {
    parse(&format!(
        "func @f level=tile {{
           param X: {dtype}[8, {row}]
           param Y: {dtype}[8, {row}]
           kernel grid(bx: 2) threads(tx: 64, ty: 1, tz: 1) {{
             alloc x: {scope} {dtype}[8, {cols}]
             copy X[0 +: 8, 0 +: {cols}] -> x[0 +: 8, 0 +: {cols}]
             atomic add Y[0 +: 8, 0 +: {cols}], x[0 +: 8, 0 +: {cols}] relaxed
           }}
         }}"
    ))
}

#[test]
fn neighbours_are_added_to_at_once_where_the_machine_does() {
    let widest = |target: Target, dtype: &str| match (target, dtype) {
        (Target::Sm80 | Target::Gfx942 | Target::Gfx950, "float16" | "bfloat16") => 2,
        (Target::Sm90a, "float16" | "bfloat16" | "float32") => 4,
        _ => 1,
    };
    for dtype in ["float32", "float16", "bfloat16", "int32"] {
        // Rows that are multiples of a vector, of half of one, of none; a tile past their end.
        for (row, cols, multiple) in [(64, 64, 4), (66, 64, 2), (63, 64, 1), (48, 64, 4)] {
            for scope in ["shared", "fragment"] {
                let func = adding(scope, dtype, row, cols);
                for target in Target::ALL {
                    let (lanes, single) = additions(&lower(&func, target));
                    let most = widest(target, dtype).min(multiple);
                    let title = format!("{target} {dtype} {row} {scope}");
                    match most {
                        1 => assert!(lanes.is_empty() && single > 0, "{title}: {lanes:?}"),
                        n => assert_eq!((lanes, single), (vec![n], 0), "{title}"),
                    }
                }
                let ty = func.buffers.values().next().expect("a buffer").dtype;
                let y = ramp(ty, &[8, row]);
                check(&func, &ramp(ty, &[8, row]), &[("Y", y)], "Y");
            }
        }
    }
}

#[test]
fn additions_that_others_depend_on_stay_in_order() {
    // What is added to is read in the same iteration, and added to twice.
    for line in [
        "Z[i] = Y[i]\natomic_rmw add Y[i], X[i] relaxed",
        "atomic_rmw add Y[i], X[i] relaxed\natomic_rmw add Y[i], X[i] relaxed",
        "atomic_rmw max Y[i], X[i] relaxed",
        "atomic_rmw add Y[i], X[i] acq_rel",
    ] {
        let func = parse(&format!(
            "func @f level=tile {{
               param X: float32[64]
               param Y: float32[64]
               param Z: float32[64]
               kernel grid(bx: 1) threads(tx: 16, ty: 1, tz: 1) {{
                 for i in parallel(64) {{
                   {line}
                 }}
               }}
             }}"
        ));
        for target in Target::ALL {
            let (lanes, single) = additions(&lower(&func, target));
            assert!(lanes.is_empty() && single > 0, "{target}: {line}");
        }
        let x = ramp(DType::F32, &[64]);
        let others = [
            ("Y", ramp(DType::F32, &[64])),
            ("Z", ramp(DType::F32, &[64])),
        ];
        check(&func, &x, &others, "Y");
        check(&func, &x, &others, "Z");
    }
}

#[test]
fn rows_of_any_length_are_checked_before_additions() {
    let func = parse(
        "func @f level=tile {
           symbol n: int32
           param X: float32[4, n]
           param Y: float32[4, n]
           kernel grid(bx: (n + 63) // 64) threads(tx: 32, ty: 1, tz: 1) {
             alloc x: fragment float32[4, 64]
             copy X[0 +: 4, bx * 64 +: 64] -> x[0 +: 4, 0 +: 64]
             atomic add Y[0 +: 4, bx * 64 +: 64], x[0 +: 4, 0 +: 64] relaxed
           }
         }",
    );
    let (lanes, single) = additions(&lower(&func, Target::Sm90a));
    assert_eq!((lanes, single > 0), (vec![4], true));
    for n in [64, 96, 98, 101] {
        let y = ramp(DType::F32, &[4, n]);
        check(&func, &ramp(DType::F32, &[4, n]), &[("Y", y)], "Y");
    }
}
