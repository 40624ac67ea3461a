//! The language's conformance vectors that concern evaluation, numbered as in its digest.

use crate::common::{call, failure, iota, kernel, output, tensor, zeros};
use tilewright_sim::HostTensor;

/// The value of an expression of the type.
fn value(ty: &str, expr: &str) -> f64 {
    let source = kernel(
        &format!("output C: {ty}[1]"),
        32,
        &format!("for i in parallel(1) {{\nC[i] = {expr}\n}}"),
    );
    output(&source, vec![], "C")[0]
}

#[test]
fn vectors_1_to_8_expressions() {
    for (vector, ty, expr, expected) in [
        (
            1,
            "float32",
            "float32(1.0009765625:float16) * 2.0",
            2.001953125,
        ),
        (
            1,
            "float16",
            "1.0009765625:float16 * 2.0:float16",
            2.001953125,
        ),
        (2, "int8", "100:int8 + 100:int8", -56.0),
        (2, "int32", "int32(100:int8) + 100", 200.0),
        (2, "int32", "int32(200:uint8) & 15", 8.0),
        (3, "bool", "uint32(-1) < 1:uint32", 0.0),
        (4, "int32", "-7 // 2", -4.0),
        (4, "int32", "-7 % 2", 1.0),
        (4, "int32", "7 % -2", -1.0),
        (4, "int32", "truncdiv(-7, 2)", -3.0),
        (4, "int32", "truncmod(-7, 2)", -1.0),
        (4, "int32", "(-7 + 2 - 1) // 2", -3.0),
        (4, "int32", "(7 + 2 - 1) // 2", 4.0),
        (5, "float8_e4m3fn", "float8_e4m3fn(500.0)", 448.0),
        (5, "float8_e5m2", "float8_e5m2(-1000000.0)", -57344.0),
        (5, "float16", "float16(70000.0)", f64::INFINITY),
        (5, "float32", "round(2.5)", 2.0),
        (5, "float32", "round(3.5)", 4.0),
        (5, "int32", "int32(2.9)", 2.0),
        (5, "int32", "int32(-2.9)", -2.0),
        (5, "int32", "int32(nan)", 0.0),
        (5, "int8", "int8(1000.0)", 127.0),
        (5, "uint8", "uint8(-3.0)", 0.0),
        (6, "float32", "max(nan, 1.0)", 1.0),
        (6, "float32", "min(max(nan, -1.0), 1.0)", -1.0),
        (8, "int64", "3000000000:int64", 3e9),
        (8, "float32", "0.1", 0.1f32 as f64),
        (0, "float32", "erf(0.5)", 0.520_499_9_f32 as f64),
        (0, "float16", "exp(1.0:float16)", 2.718_75),
        (0, "float32", "sigmoid(0.0)", 0.5),
        (0, "int32", "popcount(255)", 8.0),
        (0, "int8", "clz(1:int8)", 7.0),
        (0, "uint32", "reinterpret<uint32>(1.0)", 0x3f80_0000 as f64),
        (0, "float32", "reinterpret<float32>(1065353216:uint32)", 1.0),
        (0, "float32", "lane(ramp(1.0, 0.5, 4), 3)", 2.5),
        (
            0,
            "int32",
            "reinterpret<int32>(ramp(1:int8, 1:int8, 4))",
            0x0403_0201 as f64,
        ),
        (0, "int8", "lane(reinterpret<int8x4>(67305985), 2)", 3.0),
        (0, "bool", "isnan(0.0 / 0.0) && !isinf(1.0)", 1.0),
    ] {
        // The text form has no constant folding of its own, so these are computed at run time
        // or folded by the evaluator: both take one way.
        let got = value(ty, expr);
        assert_eq!(got, expected, "vector {vector}: {expr}");
    }
}

#[test]
fn vector_5_is_the_same_on_values_that_are_loaded() {
    let params =
        "param A: float32[6]\noutput I: int32[6]\noutput H: float16[6]\noutput Q: float8_e4m3fn[6]";
    let body = "for i in parallel(6) {\nI[i] = int32(A[i])\nH[i] = float16(A[i])\nQ[i] = float8_e4m3fn(A[i])\n}";
    let source = kernel(params, 32, body);
    let a = tensor(
        "float32",
        &[6],
        &[2.9, -2.9, f64::NAN, 1e20, 70000.0, 500.0],
    );
    let (args, _) = call(&source, vec![("A", a)]).expect("a run");
    let all = |name: &str| args.tensor(name).expect("an output").to_f64();
    assert_eq!(all("I"), [2., -2., 0., 2147483647., 70000., 500.]);
    assert_eq!(all("H")[3..], [f64::INFINITY, f64::INFINITY, 500.]);
    assert_eq!(all("Q")[3..], [448., 448., 448.]);
    assert!(all("H")[2].is_nan() && all("Q")[2].is_nan());
}

#[test]
fn vector_7_only_the_chosen_branch_is_read() {
    // S has four elements: a read of the fifth would be an error.
    let body = "alloc S: shared int32[4]
fill S[0 +: 4], 7
for i in parallel(8) {
  C[i] = if_then_else(i < 4, S[i], 0)
}";
    let source = kernel("output C: int32[8]", 32, body);
    assert_eq!(
        output(&source, vec![], "C"),
        [7., 7., 7., 7., 0., 0., 0., 0.]
    );
    let eager = source.replace("if_then_else", "select");
    failure(&eager, vec![], "out-of-bounds");
    // On global memory the read happens and gives zero.
    let body = "for i in parallel(8) {\nC[i] = select(i < 2, A[i], A[i] + 1)\n}";
    let source = kernel("param A: int32[4]\noutput C: int32[8]", 32, body);
    let got = output(&source, vec![("A", iota("int32", &[4]))], "C");
    assert_eq!(got, [0., 1., 3., 4., 1., 1., 1., 1.]);
}

#[test]
fn vectors_10_and_11_variables_and_snapshots() {
    let body = "alloc i: var int32
i[] = 0
for k in serial(0, 4) {
  i[] = i[] + 1
}
A[0] = i[]
let x: int32 = A[1]
A[1] = 5
A[2] = x";
    let source = kernel("param A: int32[3]", 32, body);
    let got = output(&source, vec![("A", iota("int32", &[3]))], "A");
    assert_eq!(got, [4., 5., 1.]);
}

#[test]
fn vector_14_loads_outside_are_zero() {
    let body = "for i in serial(0, 6) {\nC[i] = A[s + i]\n}";
    let source = kernel(
        "param A: int32[16]\nscalar s: int32\noutput C: int32[6]",
        32,
        body,
    );
    let func = crate::common::parse(&source);
    let mut args = tilewright_sim::Args::new();
    args.insert("A", tilewright_sim::Arg::Tensor(iota("int32", &[16])));
    args.insert("s", tilewright_sim::Arg::Int(-3));
    tilewright_sim::run(&func, &mut args, &Default::default()).expect("a run");
    let got = args.tensor("C").expect("an output").to_f64();
    assert_eq!(got, [0., 0., 0., 0., 1., 2.]);
}

#[test]
fn vector_15_ranges() {
    for (range, expected) in [
        ("serial(10, 0, -3)", vec![10., 7., 4., 1.]),
        ("serial(5, 2)", vec![]),
        ("serial(2, 9, 3)", vec![2., 5., 8.]),
    ] {
        let body = format!(
            "alloc n: var int32\nn[] = 0\nfor i in {range} {{\nC[n[]] = i\nn[] = n[] + 1\n}}\nC[7] = n[]"
        );
        let source = kernel("param C: int32[8]", 32, &body);
        let got = output(&source, vec![("C", zeros("int32", &[8]))], "C");
        assert_eq!(got[..expected.len()], expected, "{range}");
        assert_eq!(got[7], expected.len() as f64, "{range}");
    }
}

#[test]
fn vectors_16_and_17_partial_copies() {
    for (safe, outside) in [("", 0.0), (" safe=-1.0", -1.0)] {
        let params = format!("param A: float32[60, 60]{safe}\noutput B: float32[64, 64]");
        let body = "alloc S: shared float32[64, 64]
copy A[0 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64]
copy S[0 +: 64, 0 +: 64] -> B[0 +: 64, 0 +: 64]
copy S[0 +: 64, 0 +: 64] -> A[32 +: 64, 32 +: 64]";
        let source = kernel(&params, 128, body);
        let a = iota("float32", &[60, 60]);
        let (args, _) = call(&source, vec![("A", a)]).expect("a run");
        let (a, b) = (args.tensor("A").expect("A"), args.tensor("B").expect("B"));
        for i in 0..64 {
            for j in 0..64 {
                let inside = i < 60 && j < 60;
                let expected = if inside { (i * 60 + j) as f64 } else { outside };
                assert_eq!(b.get_f64(i * 64 + j), expected, "({i}, {j})");
                if inside {
                    let moved = if i >= 32 && j >= 32 {
                        (i - 32) * 60 + j - 32
                    } else {
                        i * 60 + j
                    };
                    assert_eq!(a.get_f64(i * 60 + j), moved as f64);
                }
            }
        }
    }
}

#[test]
fn vector_18_unit_dimensions_are_dropped() {
    let body = "alloc S: shared float32[2, 3]
copy A[1, 0, 1 +: 2, 0 +: 3] -> S[0 +: 2, 0 +: 3]
copy S[0 +: 2, 0 +: 3] -> B[0 +: 2, 0 +: 3]";
    let source = kernel(
        "param A: float32[2, 2, 4, 3]\noutput B: float32[2, 3]",
        32,
        body,
    );
    let got = output(&source, vec![("A", iota("float32", &[2, 2, 4, 3]))], "B");
    assert_eq!(got, [27., 28., 29., 30., 31., 32.]);
}

#[test]
fn vector_19_unequal_extents_are_refused() {
    let body = "copy A[0 +: 4, 0 +: 2] -> B[0 +: 4, 0 +: 3]";
    let source = kernel("param A: int32[4, 4]\nparam B: int32[4, 4]", 32, body);
    let (a, b) = (iota("int32", &[4, 4]), iota("int32", &[4, 4]));
    failure(&source, vec![("A", a), ("B", b)], "unequal-extents");
}

#[test]
fn vector_20_copies_round_to_nearest_even() {
    let body = "alloc F: fragment float32[4]
copy A[0 +: 4] -> F[0 +: 4]
copy F[0 +: 4] -> B[0 +: 4]";
    let source = kernel("param A: float32[4]\noutput B: float16[4]", 32, body);
    let (one, ulp) = (1.0, 1.0 / 1024.0);
    let values = [one + ulp / 2.0, one + ulp * 1.5, one + ulp * 0.51, 65520.0];
    let got = output(&source, vec![("A", tensor("float32", &[4], &values))], "B");
    assert_eq!(got, [one, one + 2.0 * ulp, one + ulp, f64::INFINITY]);
}

#[test]
fn vector_21_im2col() {
    let body = "alloc S: shared float32[9, 9]
im2col X -> S[0 +: 9, 0 +: 9] m=0 k=0 kernel=3 stride=1 dilation=1 pad=1
copy S[0 +: 9, 0 +: 9] -> C[0 +: 9, 0 +: 9]";
    let source = kernel(
        "param X: float32[1, 3, 3, 1]\noutput C: float32[9, 9]",
        32,
        body,
    );
    let x: Vec<f64> = (1..=9).map(|v| v as f64).collect();
    let got = output(
        &source,
        vec![("X", tensor("float32", &[1, 3, 3, 1], &x))],
        "C",
    );
    assert_eq!(got[..9], [0., 0., 0., 0., 1., 2., 0., 4., 5.]);
    // The middle row is the whole image.
    assert_eq!(got[36..45], x[..]);
}

/// One fold of `values` into `old` (undefined where `None`), in float32.
fn fold(kind: &str, values: &[f64], old: Option<f64>, flags: &str) -> f64 {
    let n = values.len();
    let body = format!(
        "alloc F: fragment float32[{n}]
alloc O: fragment float32[1]
copy A[0 +: {n}] -> F[0 +: {n}]
copy C[0 +: 1] -> O[0 +: 1]
reduce {kind} F[0 +: {n}] -> O[0 +: 1] dim=0 {flags}
copy O[0 +: 1] -> C[0 +: 1]"
    );
    let source = kernel(
        &format!("param A: float32[{n}]\nparam C: float32[1]"),
        32,
        &body,
    );
    let list = vec![
        ("A", tensor("float32", &[n], values)),
        ("C", tensor("float32", &[1], &[old.unwrap_or(99.0)])),
    ];
    output(&source, list, "C")[0]
}

#[test]
fn vectors_24_and_25_reductions() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    assert_eq!(fold("max", &[-inf, nan, 2.0], None, "clear"), 2.0);
    assert_eq!(fold("max", &[nan, nan], None, "clear"), -inf);
    assert_eq!(fold("max", &[1.0, 3.0], Some(5.0), ""), 5.0);
    assert_eq!(fold("sum", &[1.0, 2.0, 3.0], Some(1.0), ""), 7.0);
    assert_eq!(fold("sum", &[1.0, 2.0, 3.0], None, "clear"), 6.0);
    assert_eq!(fold("absmax", &[-3.0, 2.0], None, "clear"), 3.0);
    assert_eq!(fold("abssum", &[-3.0, 2.0], None, "clear"), 5.0);
    assert_eq!(fold("min", &[-3.0, 2.0], None, "clear"), -3.0);

    for out in ["[4]", "[4, 1]"] {
        let region = if out == "[4]" {
            "0 +: 4"
        } else {
            "0 +: 4, 0 +: 1"
        };
        let body = format!(
            "alloc F: fragment float32[4, 6]
alloc O: fragment float32{out}
copy A[0 +: 4, 0 +: 6] -> F[0 +: 4, 0 +: 6]
reduce sum F[0 +: 4, 0 +: 6] -> O[{region}] dim=1 clear
copy O[{region}] -> C[{region}]"
        );
        let params = format!("param A: float32[4, 6]\noutput C: float32{out}");
        let source = kernel(&params, 32, &body);
        let got = output(&source, vec![("A", iota("float32", &[4, 6]))], "C");
        assert_eq!(got, [15., 51., 87., 123.]);
    }
}

#[test]
fn nan_wins_where_it_is_asked_to() {
    let body = "alloc F: fragment float16[3]
alloc O: fragment float16[1]
copy A[0 +: 3] -> F[0 +: 3]
reduce max F[0 +: 3] -> O[0 +: 1] dim=0 clear nan_propagate
copy O[0 +: 1] -> C[0 +: 1]";
    let source = kernel("param A: float16[3]\noutput C: float16[1]", 32, body);
    let a = tensor("float16", &[3], &[1.0, f64::NAN, 2.0]);
    assert!(output(&source, vec![("A", a)], "C")[0].is_nan());
}

#[test]
fn vector_26_scans() {
    for (flags, expected) in [("", [1., 3., 6.]), (" reverse", [6., 5., 3.])] {
        let body = format!(
            "alloc S: shared int32[3]
copy A[0 +: 3] -> S[0 +: 3]
scan sum S[0 +: 3] -> S[0 +: 3] dim=0{flags}
copy S[0 +: 3] -> C[0 +: 3]"
        );
        let source = kernel("param A: int32[3]\noutput C: int32[3]", 32, &body);
        let a = tensor("int32", &[3], &[1., 2., 3.]);
        assert_eq!(output(&source, vec![("A", a)], "C"), expected);
    }
}

#[test]
fn vectors_27_and_28_reducers() {
    // The legacy way: cleared, added to, finalised, read.
    let body = "alloc acc: reducer int32[1] op=sum
fill acc[0 +: 1], 0
for i in parallel(8) {
  acc[0] = acc[0] + A[i]
}
reducer_finalize acc
for i in parallel(1) {
  C[0] = acc[0]
}";
    let params = "param A: int32[8]\noutput C: int32[1]";
    let a = || {
        vec![(
            "A",
            tensor("int32", &[8], &[1., 2., 3., 4., 5., 6., 7., 8.]),
        )]
    };
    assert_eq!(output(&kernel(params, 128, body), a(), "C"), [36.]);

    let body = "alloc acc: reducer int32[1] op=sum
alloc F: fragment int32[1]
reducer_init acc, 10
for i in parallel(8) {
  reducer_update acc[0], A[i]
}
reducer_finalize acc -> F[0 +: 1]
copy F[0 +: 1] -> C[0 +: 1]";
    let source = kernel(params, 128, body);
    assert_eq!(output(&source, a(), "C"), [46.]);
    let text = source.replace("reducer_init acc, 10\n", "");
    failure(&text, a(), "reducer-state");
}

#[test]
fn vectors_29_and_30_block_indices_are_a_bijection() {
    // The launch order itself is tested beside the re-mapping; here every tile is written once.
    let source = "func @k level=tile {
  output C: int32[4, 3]
  kernel grid(bx: 3, by: 4) threads(tx: 32, ty: 1, tz: 1) swizzle=column(2) {
    for i in parallel(1) {
      C[by, bx] = by * 10 + bx
    }
  }
}";
    let got = output(source, vec![], "C");
    for (i, v) in got.iter().enumerate() {
        assert_eq!(*v, (i / 3 * 10 + i % 3) as f64);
    }
}

#[test]
fn vector_31_persistent_tiles() {
    // Each block notes the order in which it visits tiles.
    let source = "func @k level=tile {
  param C: int32[4, 8]
  kernel grid(bx: 4) threads(tx: 32, ty: 1, tz: 1) {
    alloc n: var int32
    n[] = 0
    for i, j in persistent(2, 3) wave=4 index=bx group=2 {
      C[bx, n[]] = i * 10 + j
      n[] = n[] + 1
    }
  }
}";
    let minus = tensor("int32", &[4, 8], &[-1.0; 32]);
    let got = output(source, vec![("C", minus)], "C");
    // L = 0…7: (0,0) (0,1) (1,0) (1,1) (0,2) ✗ (1,2) ✗, dealt out four at a time.
    assert_eq!(got[0..3], [0., 2., -1.]);
    assert_eq!(got[8..10], [1., -1.]);
    assert_eq!(got[16..19], [10., 12., -1.]);
    assert_eq!(got[24..26], [11., -1.]);
}

#[test]
fn vector_35_thread_level_atomics() {
    let params = "param C: int32[2]";
    let body = "atomic_rmw add C[0], 1 relaxed
for i in parallel(100) {
  atomic_rmw add C[1], 1 relaxed
}";
    let got = output(
        &kernel(params, 256, body),
        vec![("C", zeros("int32", &[2]))],
        "C",
    );
    assert_eq!(got, [256., 100.]);
}

#[test]
fn vector_36_tile_atomics() {
    let source = "func @k level=tile {
  param C: float32[50]
  kernel grid(bx: 3) threads(tx: 128, ty: 1, tz: 1) {
    alloc F: fragment float32[64]
    for i in parallel(64) {
      F[i] = float32(i)
    }
    atomic add C[0 +: 64], F[0 +: 64] relaxed
  }
}";
    let got = output(source, vec![("C", zeros("float32", &[50]))], "C");
    let expected: Vec<f64> = (0..50).map(|i| 3.0 * i as f64).collect();
    assert_eq!(got, expected);
}

#[test]
fn vector_37_vector_atomics() {
    let body = "if tx == 0 {\natomic_vec_add C[4], V[0] lanes=4\n}";
    let source = kernel("param C: float16[8]\nparam V: float32[4]", 32, body);
    let list = vec![
        ("C", zeros("float16", &[8])),
        ("V", tensor("float32", &[4], &[1., 2., 3., 4.])),
    ];
    assert_eq!(output(&source, list, "C"), [0., 0., 0., 0., 1., 2., 3., 4.]);
}

#[test]
fn views_share_storage_and_reinterpret_bits() {
    let body = "alloc S: shared float32[2, 2]
view Q: shared uint8[16] of S
view R: shared float32[4] of S
fill S[0 +: 2, 0 +: 2], 1.0
for i in parallel(1) {
  Q[7] = 64:uint8
  R[3] = -2.0
}
copy S[0 +: 2, 0 +: 2] -> C[0 +: 2, 0 +: 2]
copy Q[12 +: 4] -> B[0 +: 4]";
    let source = kernel("output C: float32[2, 2]\noutput B: uint8[4]", 32, body);
    let (args, _) = call(&source, vec![]).expect("a run");
    let all = |name: &str| args.tensor(name).expect("an output").to_f64();
    // 1.0 is 3f800000; its top byte became 40.
    assert_eq!(all("C"), [1., f32::from_bits(0x4080_0000) as f64, 1., -2.]);
    assert_eq!(all("B"), [0., 0., 0., 192.]);
}

#[test]
fn packed_types_in_memory() {
    let body = "alloc S: shared int4[8]
copy A[0 +: 8] -> S[0 +: 8]
view Q: shared uint8[4] of S
for i in parallel(4) {
  B[i] = Q[i]
}
for i in parallel(8) {
  C[i] = int32(S[7 - i])
}";
    let source = kernel(
        "param A: int4[8]\noutput B: uint8[4]\noutput C: int32[8]",
        32,
        body,
    );
    let a = HostTensor::from_ints(
        crate::common::dtype("int4"),
        &[8],
        &[0, 1, -1, 3, -8, 7, 2, -2],
    );
    let (args, _) = call(&source, vec![("A", a.expect("small"))]).expect("a run");
    let all = |name: &str| args.tensor(name).expect("an output").to_f64();
    assert_eq!(
        all("B"),
        [0x10 as f64, 0x3f as f64, 0x78 as f64, 0xe2 as f64]
    );
    assert_eq!(all("C"), [-2., 2., 7., -8., 3., -1., 1., 0.]);
}
