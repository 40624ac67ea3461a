//! Blocks of a cluster: their numbers, barriers of all of them, arrivals and tiles from one to another.

use crate::common::{call, failure, iota, output};

/// A kernel of clusters of two over six blocks.
fn pairs(params: &str, body: &str) -> String {
    format!(
        "func @k level=tile {{\n{params}\nkernel grid(bx: 6) threads(tx: 32, ty: 1, tz: 1) cluster=(2, 1, 1) rank=rank {{\n{body}\n}}\n}}\n"
    )
}

#[test]
fn blocks_are_numbered_along_x_then_y() {
    let source = "func @k level=tile {
  output C: int32[4, 6]
  kernel grid(bx: 6, by: 4) threads(tx: 1, ty: 1, tz: 1) cluster=(3, 2, 1) rank=rank {
    C[by, bx] = rank
  }
}
";
    let expected = (0..4).flat_map(|y| (0..6).map(move |x| f64::from(x % 3 + y % 2 * 3)));
    assert_eq!(output(source, vec![], "C"), expected.collect::<Vec<_>>());
}

/// The first block waits for an arrival of the second.
#[test]
fn a_block_arrives_in_another() {
    let body = "alloc bar: barrier uint64[2] arrivals=[32, 1]
if rank == 1 {
  mbarrier_arrive bar[0] block=(1 - rank)
}
if rank == 0 {
  mbarrier_wait bar[0] parity=0
}
C[bx * 32 + tx] = rank
sync_cluster";
    let c = output(&pairs("output C: int32[192]", body), vec![], "C");
    let expected = (0..192).map(|i| f64::from(i / 32 % 2)).collect::<Vec<_>>();
    assert_eq!(c, expected);
}

#[test]
fn arrivals_of_all_blocks_count_in_each() {
    let body = "alloc bar: barrier uint64[1] arrivals=[64]
mbarrier_arrive bar[0] cluster
mbarrier_wait bar[0] parity=0
C[bx * 32 + tx] = 1
sync_cluster";
    let c = output(&pairs("output C: int32[192]", body), vec![], "C");
    assert_eq!(c, [1.; 192]);
}

/// One load a cluster, three times over.
#[test]
fn a_tile_comes_to_both_blocks() {
    let body = "alloc S: shared int32[8, 4]
alloc full: barrier uint64[1] arrivals=[32]
for k in serial(0, 3) {
  copy A[k, bx // 2 * 8 +: 8, 0 +: 4] -> S[0 +: 8, 0 +: 4] tma barrier=full[0] multicast=3
  mbarrier_arrive full[0]
  mbarrier_wait full[0] parity=k
  for i, j in parallel(8, 4) {
    C[k, bx * 8 + i, j] = S[i, j] + rank
  }
  sync_cluster
}";
    let source = pairs("param A: int32[3, 24, 4]\noutput C: int32[3, 48, 4]", body);
    let c = output(&source, vec![("A", iota("int32", &[3, 24, 4]))], "C");
    let mut expected = Vec::new();
    for (k, row, j) in (0..3 * 48 * 4).map(|n| (n / 192, n / 4 % 48, n % 4)) {
        let (block, i) = (row / 8, row % 8);
        let from = k * 96 + (block / 2 * 8 + i) * 4 + j;
        expected.push(f64::from(from + block % 2));
    }
    assert_eq!(c, expected);
}

/// Blocks outside of the mask load for themselves.
#[test]
fn a_tile_comes_to_some_blocks() {
    let source = "func @k level=tile {
  param A: int32[32, 4]
  output C: int32[32, 4]
  kernel grid(bx: 4) threads(tx: 32, ty: 1, tz: 1) cluster=(4, 1, 1) {
    alloc S: shared int32[8, 4]
    alloc full: barrier uint64[1] arrivals=[32]
    copy A[bx * 8 +: 8, 0 +: 4] -> S[0 +: 8, 0 +: 4] tma barrier=full[0] multicast=6
    mbarrier_arrive full[0]
    mbarrier_wait full[0] parity=0
    copy S[0 +: 8, 0 +: 4] -> C[bx * 8 +: 8, 0 +: 4]
  }
}
";
    let c = output(source, vec![("A", iota("int32", &[32, 4]))], "C");
    let from = [0, 1, 1, 3];
    let expected = (0..128).map(|n| f64::from(from[n / 32] * 32 + n as i32 % 32));
    assert_eq!(c, expected.collect::<Vec<_>>());
}

/// A receiver that announces nothing and does not wait reads what is not there.
#[test]
fn who_does_not_wait_reads_nothing() {
    let body = "alloc S: shared int32[8, 4]
alloc full: barrier uint64[1] arrivals=[32]
if rank == 1 {
  copy S[0 +: 8, 0 +: 4] -> C[bx * 8 +: 8, 0 +: 4]
}
sync_cluster
copy A[0 +: 8, 0 +: 4] -> S[0 +: 8, 0 +: 4] tma barrier=full[0] multicast=3";
    let source = pairs("param A: int32[8, 4]\noutput C: int32[48, 4]", body);
    failure(
        &source,
        vec![("A", iota("int32", &[8, 4]))],
        "uninitialised-read",
    );
}

#[test]
fn a_barrier_that_one_block_never_reaches() {
    let body = "if rank == 0 {\n  sync_cluster\n}\nC[bx] = 1";
    let text = failure(&pairs("output C: int32[6]", body), vec![], "deadlock");
    assert!(
        text.contains("the other blocks at a barrier of the cluster"),
        "{text}"
    );
}

/// What a block does between the halves does not wait for the others.
#[test]
fn halves_of_a_barrier() {
    let body = "alloc bar: barrier uint64[1] arrivals=[32]
cluster_arrive
if rank == 1 {
  mbarrier_arrive bar[0] block=0
}
if rank == 0 {
  mbarrier_wait bar[0] parity=0
}
cluster_wait
C[bx] = rank
sync_cluster";
    let c = output(&pairs("output C: int32[6]", body), vec![], "C");
    assert_eq!(c, [0., 1., 0., 1., 0., 1.]);
    for body in [
        "cluster_arrive\ncluster_arrive\nC[bx] = 1",
        "cluster_wait\nC[bx] = 1",
        "cluster_arrive\nsync_cluster\nC[bx] = 1",
    ] {
        failure(&pairs("output C: int32[6]", body), vec![], "barrier-count");
    }
    let body = "cluster_arrive\nif rank == 0 {\n  cluster_wait\n  cluster_arrive\n  cluster_wait\n}\nC[bx] = 1";
    failure(&pairs("output C: int32[6]", body), vec![], "deadlock");
}

#[test]
fn more_arrivals_than_counted() {
    let body = "alloc bar: barrier uint64[1] arrivals=[40]
mbarrier_expect_tx bar[0] bytes=1
mbarrier_arrive bar[0] block=0
sync_cluster
C[bx] = 1";
    failure(&pairs("output C: int32[6]", body), vec![], "barrier-count");
}

#[test]
fn a_block_that_the_cluster_has_not() {
    let body =
        "alloc bar: barrier uint64[1] arrivals=[32]\nmbarrier_arrive bar[0] block=bx\nC[bx] = 1";
    failure(&pairs("output C: int32[6]", body), vec![], "out-of-bounds");
}

/// What the call's grid is not a multiple of.
#[test]
fn clusters_divide_the_grid_of_the_call() {
    let source = "func @k level=tile {
  symbol n: int32
  param A: int32[n]
  output C: int32[n]
  kernel grid(bx: n) threads(tx: 32, ty: 1, tz: 1) cluster=(2, 1, 1) {
    C[bx] = A[bx]
  }
}
";
    assert!(call(source, vec![("A", iota("int32", &[4]))]).is_ok());
    failure(source, vec![("A", iota("int32", &[5]))], "launch-extent");
}
