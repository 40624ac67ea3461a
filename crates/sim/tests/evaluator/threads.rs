//! Code that speaks of threads: lockstep, masks, shuffles, votes, reductions over threads.

use crate::common::{call, iota, kernel, output, tensor, zeros};
use tilewright_sim::Schedule;

/// What each of `threads` threads leaves in `C`, an int32 for each.
fn by_thread(threads: u32, body: &str) -> Vec<f64> {
    let source = kernel(&format!("output C: int32[{threads}]"), threads, body);
    output(&source, vec![], "C")
}

#[test]
fn thread_dependent_branches_and_loops() {
    let got = by_thread(
        8,
        "alloc x: var int32
if tx < 3 {
  x[] = 1
} else {
  if tx == 5 {
    x[] = 2
  } else {
    x[] = 3
  }
}
for i in serial(0, tx) {
  x[] = x[] + 10
}
C[tx] = x[]",
    );
    assert_eq!(got, [1., 11., 21., 33., 43., 52., 63., 73.]);
}

#[test]
fn break_and_continue_by_thread() {
    // Thread t adds 0 + … up to t, leaves out 2, and stops at 5.
    let got = by_thread(
        8,
        "alloc x: var int32
for i in serial(0, 10) {
  if i > tx {
    break
  }
  if i == 2 {
    continue
  }
  if i == 5 {
    break
  }
  x[] = x[] + i
}
C[tx] = x[]",
    );
    let expected: Vec<f64> = (0..8)
        .map(|t| {
            (0..=t)
                .take_while(|&i| i != 5)
                .filter(|&i| i != 2)
                .sum::<i32>() as f64
        })
        .collect();
    assert_eq!(got, expected);
}

#[test]
fn while_by_thread_with_a_uniform_loop_inside() {
    // Collatz steps of t + 1, counted two at a time by an inner loop that all share.
    let got = by_thread(
        16,
        "alloc v: var int32
alloc n: var int32
v[] = tx + 1
while v[] != 1 {
  if v[] % 2 == 0 {
    v[] = v[] // 2
  } else {
    v[] = v[] * 3 + 1
  }
  for i in serial(0, 2) {
    n[] = n[] + 1
  }
}
C[tx] = n[]",
    );
    let steps = |mut v: u32| {
        let mut n = 0;
        while v != 1 {
            v = if v.is_multiple_of(2) {
                v / 2
            } else {
                3 * v + 1
            };
            n += 1;
        }
        n
    };
    let expected: Vec<f64> = (1..=16).map(|v| (2 * steps(v)) as f64).collect();
    assert_eq!(got, expected);
}

#[test]
fn a_uniform_break_leaves_a_masked_loop() {
    // The second `if` is uniform, but the loop is not: what follows it must not run.
    let got = by_thread(
        4,
        "alloc x: var int32
for i in serial(0, 6) {
  if tx == 3 {
    break
  }
  if i == 2 {
    break
  }
  x[] = x[] + 1
}
C[tx] = x[]",
    );
    assert_eq!(got, [2., 2., 2., 0.]);
}

#[test]
fn all_come_to_what_stands_before_a_continue() {
    let got = by_thread(
        4,
        "alloc n: var int32
alloc x: var int32
for i in serial(0, 4) {
  n[] = n[] + 1
  if tx < i {
    continue
  }
  x[] = x[] + 1
}
C[tx] = n[] * 10 + x[]",
    );
    assert_eq!(got, [41., 42., 43., 44.]);
}

#[test]
fn a_break_behind_a_continue_of_some() {
    let got = by_thread(
        4,
        "alloc x: var int32
for i in serial(0, 6) {
  x[] = x[] + 1
  if tx < i {
    continue
  }
  if i == 1 {
    break
  }
}
C[tx] = x[]",
    );
    assert_eq!(got, [6., 2., 2., 2.]);
}

#[test]
fn results_of_one_value_reach_every_thread() {
    let got = by_thread(
        4,
        "let n: int32 = 5
b = vote ballot n < 7
w = warp_reduce sum n
s = shuffle xor n, 1 width=4
C[tx] = int32(b) + w * 100 + s * 10000",
    );
    assert_eq!(got, [52015.; 4]);
}

#[test]
fn private_arrays_are_private() {
    let got = by_thread(
        4,
        "alloc a: local int32[4]
for i in serial(0, 4) {
  a[i] = tx * 10 + i
}
for i in vectorized(0, 2) {
  a[i] = a[3 - i]
}
C[tx] = a[0] * 100 + a[1]",
    );
    assert_eq!(got, [302., 1312., 2322., 3332.]);
}

#[test]
fn stores_of_a_statement_happen_after_its_loads() {
    // All threads read before any stores: a rotation in shared memory.
    let body = "alloc S: shared int32[8]
S[tx] = tx
S[tx] = S[(tx + 1) % 8]
sync_threads
C[tx] = S[tx]";
    assert_eq!(by_thread(8, body), [1., 2., 3., 4., 5., 6., 7., 0.]);
}

#[test]
fn copies_of_private_memory_are_done_by_each_thread() {
    let body = "alloc a: local float32[4]
copy A[tx * 4 +: 4] -> a[0 +: 4]
for i in serial(0, 4) {
  a[i] = a[i] * 2.0
}
alloc s: local float32[1]
reduce sum a[0 +: 4] -> s[0 +: 1] dim=0 clear
copy a[0 +: 4] -> C[tx * 4 +: 4]
D[tx] = s[0]";
    let params = "param A: float32[32]\noutput C: float32[32]\noutput D: float32[8]";
    let a = iota("float32", &[32]);
    let (args, _) = call(&kernel(params, 8, body), vec![("A", a)]).expect("a run");
    let all = |name: &str| args.tensor(name).expect("an output").to_f64();
    let doubled: Vec<f64> = (0..32).map(|i| 2.0 * i as f64).collect();
    assert_eq!(all("C"), doubled);
    let sums: Vec<f64> = doubled.chunks(4).map(|c| c.iter().sum()).collect();
    assert_eq!(all("D"), sums);
}

#[test]
fn shuffles() {
    for (kind, lane, source) in [
        ("index", "3", (|_| 3) as fn(usize) -> usize),
        ("up", "1", |t| if t % 8 == 0 { t } else { t - 1 }),
        ("down", "2", |t| if t % 8 > 5 { t } else { t + 2 }),
        ("xor", "5", |t| t ^ 5),
    ] {
        let body =
            format!("let v: int32 = tx * tx\nx = shuffle {kind} v, {lane} width=8\nC[tx] = x");
        let expected: Vec<f64> = (0..32)
            .map(|t| {
                let s = if kind == "index" {
                    t / 8 * 8 + 3
                } else {
                    source(t)
                };
                (s * s) as f64
            })
            .collect();
        assert_eq!(by_thread(32, &body), expected, "{kind}");
    }
}

#[test]
fn votes_and_warp_reductions() {
    let body = "a = vote any tx == 40
b = vote all tx > 31
c = vote ballot tx % 32 < 3
d = vote block_count tx < 5
e = warp_reduce sum tx
f = warp_reduce max float32(tx)
C[tx] = select(a, 1, 0) + select(b, 10, 0) + int32(c) * 100 + d * 1000
D[tx] = e
E[tx] = f";
    let params = "output C: int32[64]\noutput D: int32[64]\noutput E: float32[64]";
    let (args, _) = call(&kernel(params, 64, body), vec![]).expect("a run");
    let all = |name: &str| args.tensor(name).expect("an output").to_f64();
    assert_eq!((all("C")[0], all("C")[63]), (5700., 5711.));
    assert_eq!((all("D")[0], all("D")[33]), (496., 1520.));
    assert_eq!((all("E")[5], all("E")[40]), (31., 63.));
}

#[test]
fn reductions_over_threads() {
    // Threads 4 × 2: fold over x only, then over all.
    let source = "func @k level=tile {
  output C: int32[8]
  output D: int32[8]
  kernel grid(bx: 1) threads(tx: 4, ty: 2, tz: 1) {
    alloc r: local int32[1]
    alloc s: local int32[1]
    allreduce (a: int32, b: int32) -> a + b, identity=0, tx + ty * 10 if tx != 1 -> r[0] axes=[x]
    allreduce (a: int32, b: int32) -> max(a, b), identity=-1, tx + ty * 10 if true -> s[0] axes=[x, y]
    C[tx + ty * 4] = r[0]
    D[tx + ty * 4] = s[0]
  }
}";
    let (args, _) = call(source, vec![]).expect("a run");
    let all = |name: &str| args.tensor(name).expect("an output").to_f64();
    assert_eq!(all("C"), [5., 5., 5., 5., 35., 35., 35., 35.]);
    assert_eq!(all("D"), [13.; 8]);
}

#[test]
fn an_atomic_gives_every_thread_another_old_value() {
    let body = "old = atomic_rmw add N[0], 1 relaxed
C[old] = old * 2";
    let params = "param N: int32[1]\noutput C: int32[64]";
    let (args, report) =
        call(&kernel(params, 64, body), vec![("N", zeros("int32", &[1]))]).expect("a run");
    let expected: Vec<f64> = (0..64).map(|i| 2.0 * i as f64).collect();
    assert_eq!(args.tensor("C").expect("an output").to_f64(), expected);
    assert_eq!(args.tensor("N").expect("a counter").to_f64(), [64.]);
    assert_eq!(report.kernels[0].schedule, Schedule::Sequential);
}

#[test]
fn dp4a_adds_four_products() {
    let body = "alloc acc: local int32[1]
acc[0] = tx
dp4a A[tx * 4], B[0] -> acc[0]
C[tx] = acc[0]";
    let params = "param A: int8[8]\nparam B: int8[4]\noutput C: int32[2]";
    let list = vec![
        (
            "A",
            tensor("int8", &[8], &[1., 2., 3., 4., -1., -2., -3., -4.]),
        ),
        ("B", tensor("int8", &[4], &[10., 20., 30., 40.])),
    ];
    assert_eq!(output(&kernel(params, 2, body), list, "C"), [300., -299.]);
}

#[test]
fn variables_of_a_parallel_loop_belong_to_the_point() {
    // Each point starts from the value before the loop; after it the points must agree.
    let body = "alloc x: var int32
x[] = 5
for i in parallel(4) {
  x[] = x[] + i
  C[i] = x[]
}
for i in parallel(4) {
  x[] = 7
}
D[0] = x[]";
    let (args, _) = call(
        &kernel("output C: int32[4]\noutput D: int32[1]", 32, body),
        vec![],
    )
    .expect("a run");
    let all = |name: &str| args.tensor(name).expect("an output").to_f64();
    assert_eq!(all("C"), [5., 6., 7., 8.]);
    assert_eq!(all("D"), [7.]);
}

#[test]
fn nested_parallel_loops_and_continue() {
    let body = "for i in parallel(3) {
  for j in parallel(0..4) {
    if j == 1 {
      continue
    }
    C[i, j] = i * 10 + j
  }
}";
    let list = vec![("C", zeros("int32", &[3, 4]))];
    let got = output(&kernel("param C: int32[3, 4]", 32, body), list, "C");
    assert_eq!(got, [0., 0., 2., 3., 10., 0., 12., 13., 20., 0., 22., 23.]);
}

#[test]
fn threads_that_happen_to_agree_may_do_a_tile_operation() {
    // `x` varies as far as the analysis can tell, but holds one value.
    let body = "alloc x: var int32
x[] = tx - tx
alloc F: fragment int32[4]
fill F[0 +: 4], x[] + 3
if x[] == 0 {
  copy F[0 +: 4] -> C[0 +: 4]
}";
    assert_eq!(
        output(&kernel("output C: int32[4]", 64, body), vec![], "C"),
        [3.; 4]
    );
}

#[test]
fn prints_come_in_block_order() {
    let source = "func @k level=tile {
  kernel grid(bx: 3) threads(tx: 2, ty: 1, tz: 1) {
    print \"block\", bx
    if bx == 1 {
      print \"thread\", tx, 0.5
    }
  }
}";
    let (_, report) = call(source, vec![]).expect("a run");
    assert_eq!(
        report.prints,
        [
            "block 0",
            "block 1",
            "thread 0 0.5",
            "thread 1 0.5",
            "block 2"
        ]
    );
}

#[test]
fn vectors_of_lanes() {
    let body = "for i in parallel(2) {
  C[ramp(i * 4, 1, 4)] = A[ramp(i * 4 + 3, -1, 4)] * broadcast(2.0, 4)
}";
    let params = "param A: float32[8]\noutput C: float32[8]";
    let list = vec![("A", iota("float32", &[8]))];
    let got = output(&kernel(params, 32, body), list, "C");
    assert_eq!(got, [6., 4., 2., 0., 14., 12., 10., 8.]);
}

#[test]
fn buffers_of_vectors() {
    let body = "alloc v: local int8x4[2]
v[0] = broadcast(3:int8, 4)
v[1] = A[tx]
C[tx] = v[0] + v[1]";
    let params = "param A: int8x4[2]\noutput C: int8x4[2]";
    let a = tilewright_sim::HostTensor::from_ints(
        crate::common::dtype("int8x4"),
        &[2],
        &[1, 2, 3, 4, 5, 6, 7, 8],
    );
    let got = output(
        &kernel(params, 2, body),
        vec![("A", a.expect("small"))],
        "C",
    );
    assert_eq!(got, [4., 5., 6., 7., 8., 9., 10., 11.]);
}

#[test]
fn wide_warps() {
    let body = "let v: int32 = tx\nx = shuffle xor v, 32 width=64\na = vote any tx == 40\nC[tx] = x + select(a, 1000, 0)";
    let source = kernel("output C: int32[64]", 64, body);
    let options = tilewright_sim::RunOptions {
        warp_size: 64,
        ..Default::default()
    };
    let (args, _) = crate::common::call_with(&source, vec![], &options).expect("a run");
    let c = args.tensor("C").expect("an output").to_f64();
    assert!(
        c.iter()
            .enumerate()
            .all(|(t, &v)| v == (t ^ 32) as f64 + 1000.0)
    );
    crate::common::failure(&source, vec![], "unsupported");
}

#[test]
fn tensors_over_pointers() {
    let source = "func @k level=tile {
  scalar p: handle
  param A: float32[4, 4]
  output C: float32[4]
  kernel grid(bx: 1) threads(tx: 32, ty: 1, tz: 1) {
    pointer P: float32[4] at p
    pointer Q: float32[2, 2] at address_of(A[1, 2])
    for i in parallel(4) {
      C[i] = P[i] + Q[i // 2, i % 2]
    }
  }
}";
    let list = vec![
        ("p", tensor("float32", &[4], &[100., 200., 300., 400.])),
        ("A", iota("float32", &[4, 4])),
    ];
    assert_eq!(output(source, list, "C"), [106., 207., 308., 409.]);
}
