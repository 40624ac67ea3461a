//! What blocks do to each other: what is a race, what is not, and what is not looked at.

use crate::common::{call, iota, zeros};
use tilewright_ir::{Diagnostic, Severity};
use tilewright_sim::{RunReport, Watch};

/// A kernel of four blocks over two tensors of 128 elements.
fn kernel(body: &str) -> String {
    format!(
        "func @k level=tile {{
  param A: int32[128]
  param O: int32[128]
  kernel grid(bx: 4) threads(tx: 32, ty: 1, tz: 1) {{
{body}
  }}
}}"
    )
}

fn report(body: &str) -> RunReport {
    let list = vec![("A", iota("int32", &[128])), ("O", zeros("int32", &[128]))];
    let (_, report) = call(&kernel(body), list).expect("a run");
    report
}

fn races(body: &str) -> Vec<Diagnostic> {
    report(body).races.into_vec()
}

/// The one error of a kernel, as its message and notes.
fn race(body: &str) -> String {
    let found = races(body);
    let [one] = found.as_slice() else {
        panic!("one race, not {found:?}")
    };
    assert_eq!((one.code.0, one.severity), ("race-blocks", Severity::Error));
    assert!(!one.primary.span.is_none());
    format!("{}; {}", one.message, one.notes.join("; "))
}

fn clean(body: &str) {
    let report = report(body);
    assert!(report.races.is_empty(), "{body}: {:?}", report.races);
    assert_eq!(report.kernels[0].watch, Watch::Watched, "{body}");
}

#[test]
fn blocks_that_write_one_place() {
    let text = race("for i in parallel(32) {\nO[i] = A[bx * 32 + i]\n}");
    assert!(
        text.contains("two blocks write different values to one element of `O`"),
        "{text}"
    );
    assert!(
        text.contains("written by block (0), written by block (1)"),
        "{text}"
    );
    assert!(text.contains("it happened 96 times"), "{text}");
    clean("for i in parallel(32) {\nO[bx * 32 + i] = A[i]\n}");
}

#[test]
fn equal_values_are_a_warning() {
    let found = races("for i in parallel(32) {\nO[i] = A[i]\n}");
    let [one] = found.as_slice() else {
        panic!("one finding, not {found:?}")
    };
    assert_eq!(
        (one.code.0, one.severity),
        ("race-blocks", Severity::Warning)
    );
}

#[test]
fn a_block_that_reads_what_its_neighbour_writes() {
    // The neighbour comes later in the order of the evaluator, or earlier.
    for next in ["(bx + 1) % 4", "(bx + 3) % 4"] {
        let text = race(&format!(
            "for i in parallel(32) {{\nO[bx * 32 + i] = A[bx * 32 + i]\n}}\n\
             alloc S: shared int32[32]\ncopy A[{next} * 32 +: 32] -> S[0 +: 32]\n\
             for i in parallel(32) {{\nA[bx * 32 + i] = S[i] + 1\n}}"
        ));
        assert!(
            text.contains("a block reads an element of `A` that another one writes"),
            "{text}"
        );
    }
    // Its own part it may read and write.
    clean("for i in parallel(32) {\nA[bx * 32 + i] = A[bx * 32 + i] + 1\nO[bx * 32 + i] = 0\n}");
}

#[test]
fn blocks_that_add_to_one_place() {
    // Each reads what the others write, and writes it too.
    let found = races("for i in parallel(32) {\nA[i] = A[i] + 1\n}");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|d| d.severity == Severity::Error));
    // Atomics have an order of their own; plain accesses beside them have none.
    let update = "for i in parallel(32) {\natomic_rmw add A[i], 1 relaxed\n}";
    clean(update);
    let text = race(&format!(
        "{update}\nfor i in parallel(32) {{\nO[bx * 32 + i] = A[i]\n}}"
    ));
    assert!(text.contains("atomically"), "{text}");
}

#[test]
fn a_grid_barrier_orders_blocks() {
    let exchange = |between: &str| {
        format!(
            "for i in parallel(32) {{\nO[bx * 32 + i] = A[bx * 32 + i]\n}}\n{between}\n\
             for i in parallel(32) {{\nA[bx * 32 + i] = O[(bx * 32 + i + 32) % 128] + 1\n}}"
        )
    };
    clean(&exchange("sync_grid"));
    assert!(race(&exchange("")).contains("`O`"));
    // A barrier orders nothing that comes after it.
    assert!(race(&format!("sync_grid\n{}", exchange(""))).contains("`O`"));
}

#[test]
fn blocks_that_talk_by_atomics_are_not_looked_at() {
    let source = "func @k level=tile {
  param N: int32[1]
  param W: int32[4]
  output O: int32[4]
  kernel grid(bx: 4) threads(tx: 1, ty: 1, tz: 1) {
    W[bx] = bx
    n = atomic_rmw add N[0], 1 acq_rel
    if n == 3 {
      for i in serial(0, 4) {
        O[i] = W[i]
      }
    }
  }
}";
    let list = vec![("N", zeros("int32", &[1])), ("W", zeros("int32", &[4]))];
    let (_, report) = call(source, list).expect("a run");
    assert!(report.races.is_empty(), "{:?}", report.races);
    assert_eq!(report.kernels[0].watch, Watch::NotWatched);
}
