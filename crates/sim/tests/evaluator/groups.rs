//! Warp groups, barriers between them, and blocks that wait for each other.

use crate::common::{call, iota, kernel, output, zeros};
use tilewright_sim::Schedule;

#[test]
fn vector_32_a_barrier_of_one_group() {
    let body = "alloc bar: barrier uint64[1] arrivals=[128]
mbarrier_wait bar[0] parity=1
mbarrier_arrive bar[0]
mbarrier_wait bar[0] parity=0
mbarrier_wait bar[0] parity=0
for i in parallel(1) {
  C[0] = 1
}";
    assert_eq!(
        output(&kernel("output C: int32[1]", 128, body), vec![], "C"),
        [1.]
    );
}

#[test]
fn vector_33_groups_are_their_threads() {
    let body = "warp_group 0 {
  C[tx] = 1
}
warp_group 1 {
  C[tx] = 2
}
warp_group 0, 1 {
  D[tx] = tx
}";
    let source = kernel("output C: int32[256]\noutput D: int32[256]", 256, body);
    let (args, _) = call(&source, vec![]).expect("a run");
    let c = args.tensor("C").expect("an output").to_f64();
    assert_eq!((&c[..128], &c[128..]), (&[1.; 128][..], &[2.; 128][..]));
    let d = args.tensor("D").expect("an output").to_f64();
    assert!(d.iter().enumerate().all(|(i, &v)| v == i as f64));
}

/// A producer and a consumer with two slots between them, as warp-specialised kernels are.
const PIPELINE: &str = "func @ws level=tile {
  param A: float16[64, 96]
  param B: float16[96, 32]
  output C: float32[64, 32]
  kernel grid(bx: 1) threads(tx: 256, ty: 1, tz: 1) {
    alloc S: shared float16[2, 64, 16]
    alloc T: shared float16[2, 16, 32]
    alloc F: fragment float32[64, 32]
    alloc full: barrier uint64[2] arrivals=[128, 128]
    alloc empty: barrier uint64[2] arrivals=[128, 128]
    warp_group 1 {
      for k in serial(0, 6) {
        let slot: int32 = k % 2
        mbarrier_wait empty[slot] parity=(k // 2 + 1)
        copy A[0 +: 64, k * 16 +: 16] -> S[slot, 0 +: 64, 0 +: 16] tma barrier=full[slot]
        copy B[k * 16 +: 16, 0 +: 32] -> T[slot, 0 +: 16, 0 +: 32] tma barrier=full[slot]
        mbarrier_arrive full[slot]
      }
    }
    warp_group 0 {
      fill F[0 +: 64, 0 +: 32], 0.0
      for k in serial(0, 6) {
        let slot: int32 = k % 2
        mbarrier_wait full[slot] parity=(k // 2)
        gemm S[slot, 0 +: 64, 0 +: 16], T[slot, 0 +: 16, 0 +: 32] -> F[0 +: 64, 0 +: 32]
        mbarrier_arrive empty[slot]
      }
      copy F[0 +: 64, 0 +: 32] -> C[0 +: 64, 0 +: 32]
    }
  }
}";

#[test]
fn a_producer_and_a_consumer() {
    let small = |shape: &[usize], modulo: u64| {
        let mut rng = tilewright_sim::Rng::new(0);
        let fill = tilewright_sim::Fill::Iota(modulo);
        tilewright_sim::HostTensor::random(crate::common::dtype("float16"), shape, fill, &mut rng)
            .expect("small")
    };
    let (a, b) = (small(&[64, 96], 7), small(&[96, 32], 5));
    let (x, y) = (a.to_f64(), b.to_f64());
    let got = output(PIPELINE, vec![("A", a), ("B", b)], "C");
    for i in 0..64 {
        for j in 0..32 {
            let expected: f64 = (0..96).map(|k| x[i * 96 + k] * y[k * 32 + j]).sum();
            assert_eq!(got[i * 32 + j], expected, "({i}, {j})");
        }
    }
}

#[test]
fn groups_may_be_iterations_apart() {
    // Group 1 is always one iteration ahead: the groups are not joined at each iteration.
    let body = "alloc S: shared int32[8]
alloc bar: barrier uint64[8] arrivals=[128, 128, 128, 128, 128, 128, 128, 128]
for k in serial(0, 8) {
  warp_group 0 {
    if k < 7 {
      mbarrier_wait bar[k + 1] parity=0
    }
    C[k] = k
  }
  warp_group 1 {
    mbarrier_arrive bar[k]
  }
}";
    let source = kernel("output C: int32[8]", 256, body);
    assert_eq!(
        output(&source, vec![], "C"),
        [0., 1., 2., 3., 4., 5., 6., 7.]
    );
}

#[test]
fn collectives_outside_of_groups_are_done_once_by_all() {
    let body = "alloc S: shared int32[4]
alloc x: var int32
fill S[0 +: 4], 1
warp_group 0 {
  atomic add C[0 +: 4], S[0 +: 4] relaxed
}
atomic add C[0 +: 4], S[0 +: 4] relaxed
for i in parallel(4) {
  x[] = 9
  atomic_rmw add C[i], 10 relaxed
}
warp_group 1 {
  D[tx - 128] = x[]
}
sync_threads
atomic_rmw add C[3], 100 relaxed";
    let source = kernel("param C: int32[4]\noutput D: int32[128]", 256, body);
    let (args, _) = call(&source, vec![("C", zeros("int32", &[4]))]).expect("a run");
    let c = args.tensor("C").expect("C").to_f64();
    assert_eq!(c, [12., 12., 12., 12. + 25600.]);
    assert_eq!(args.tensor("D").expect("D").to_f64(), [9.; 128]);
}

#[test]
fn named_barriers_between_groups() {
    let body = "alloc S: shared int32[1]
warp_group 1 {
  S[0] = 42
  sync_threads id=3 count=256
}
warp_group 0 {
  sync_threads id=3 count=256
  C[tx] = S[0]
}";
    assert_eq!(
        output(&kernel("output C: int32[128]", 256, body), vec![], "C"),
        [42.; 128]
    );
}

#[test]
fn the_grid_waits_for_itself() {
    // Each block publishes a value and, after the barrier, reads its neighbour's.
    let source = "func @k level=tile {
  output A: int32[8]
  output C: int32[8]
  kernel grid(bx: 8) threads(tx: 32, ty: 1, tz: 1) {
    for i in parallel(1) {
      A[bx] = bx * bx
    }
    sync_grid
    for i in parallel(1) {
      C[bx] = A[(bx + 1) % 8]
    }
  }
}";
    let (args, report) = call(source, vec![]).expect("a run");
    assert_eq!(report.kernels[0].schedule, Schedule::Interleaved);
    let c = args.tensor("C").expect("an output").to_f64();
    assert_eq!(c, [1., 4., 9., 16., 25., 36., 49., 0.]);
}

#[test]
fn a_block_may_spin_for_a_later_one() {
    let source = "func @k level=tile {
  param flag: int32[1]
  param A: int32[4]
  output C: int32[1]
  kernel grid(bx: 2) threads(tx: 32, ty: 1, tz: 1) {
    if bx == 0 {
      alloc seen: var int32
      seen[] = 0
      while seen[] == 0 {
        f = atomic_load flag[0] acquire
        seen[] = f
      }
      C[0] = A[3]
    } else {
      for i in serial(0, 4) {
        A[i] = i + 10
      }
      atomic_store flag[0], 1 release
    }
  }
}";
    let list = vec![("flag", zeros("int32", &[1])), ("A", iota("int32", &[4]))];
    let (args, report) = call(source, list).expect("a run");
    assert_eq!(args.tensor("C").expect("an output").to_f64(), [13.]);
    assert_eq!(report.kernels[0].schedule, Schedule::Interleaved);
}

#[test]
fn blocks_that_add_to_one_place_are_deterministic() {
    let source = "func @k level=tile {
  param C: float32[1]
  kernel grid(bx: 200) threads(tx: 32, ty: 1, tz: 1) {
    for i in parallel(3) {
      atomic_rmw add C[0], 0.1 / float32(bx + i + 1) relaxed
    }
  }
}";
    let mut results = Vec::new();
    for threads in [1, 2, 4] {
        let options = tilewright_sim::RunOptions {
            threads,
            ..Default::default()
        };
        let list = vec![("C", zeros("float32", &[1]))];
        let (args, report) = crate::common::call_with(source, list, &options).expect("a run");
        assert_eq!(report.kernels[0].schedule, Schedule::Parallel);
        results.push(args.tensor("C").expect("C").to_f64()[0]);
    }
    // The same additions in float32, in block order.
    let mut expected = 0f32;
    for bx in 0..200 {
        for i in 0..3 {
            expected += 0.1f32 / (bx + i + 1) as f32;
        }
    }
    assert_eq!(results, [expected as f64; 3]);
}
