//! Values, names and elements: what Python computes, and what is recorded.

use super::{body, code, run};

#[test]
fn vector_9_a_python_left_side_of_or_counts_as_its_truth() {
    assert_eq!(body("flag = 3\ny = flag or 7\nA[0] = y"), "A[0] = 1");
    assert_eq!(body("flag = 0\ny = flag or 7\nA[0] = y"), "A[0] = 7");
    // A run-time left side makes a run-time operation.
    assert_eq!(
        body("if A[0] > 0 and A[1] > 0:\n    A[2] = 1"),
        "if A[0] > 0 && A[1] > 0 {\n  A[2] = 1\n}"
    );
    assert_eq!(code("if A[0] and A[1]:\n    A[2] = 1"), "operand-types");
}

#[test]
fn vector_10_python_names_change_once_and_variables_each_time() {
    assert_eq!(
        body("i = 0\nfor k in T.serial(4):\n    i += 1\nA[0] = i"),
        "for k in serial(0, 4) {\n}\nA[0] = 1"
    );
    assert_eq!(
        body("i = T.alloc_var(T.int32, 0)\nfor k in T.serial(4):\n    i += 1\nA[0] = i"),
        "alloc i: var int32\ni[] = 0\nfor k in serial(0, 4) {\n  i[] = i[] + 1\n}\nA[0] = i[]"
    );
}

#[test]
fn vector_11_a_name_is_a_snapshot() {
    assert_eq!(
        body("x = A[0]\nA[0] = 5\nB[0] = x"),
        "let x: int32 = A[0]\nA[0] = 5\nB[0] = x"
    );
    assert_eq!(
        body("v = T.alloc_var('int32')\ny = v\nv = 3\nA[0] = y"),
        "alloc v: var int32\nv[] = 0\nlet y: int32 = v[]\nv[] = 3\nA[0] = y"
    );
}

#[test]
fn vector_12_swaps_and_refusals() {
    assert_eq!(
        body("a = T.alloc_var('int32', 1)\nb = T.alloc_var('int32', 2)\na, b = b, a"),
        "alloc a: var int32\na[] = 1\nalloc b: var int32\nb[] = 2\nlet a.1: int32 = b[]\n\
         let b.1: int32 = a[]\na[] = a.1\nb[] = b.1"
    );
    assert_eq!(
        body("A[0], A[1] = A[1], A[0]"),
        "let tmp: int32 = A[1]\nlet tmp.1: int32 = A[0]\nA[0] = tmp\nA[1] = tmp.1"
    );
    assert_eq!(code("while True:\n    A[0] = 1"), "control-flow");
    assert_eq!(
        code("if A[1] > 0:\n    y = A[0]\nB[0] = y"),
        "name-out-of-region"
    );
    // A Python list in a loop of the kernel is written out; TileLang refuses it.
    assert_eq!(body("for x in [1, 2]:\n    A[x] = x"), "A[1] = 1\nA[2] = 2");
}

#[test]
fn vector_14_negative_indices_count_from_the_end() {
    assert_eq!(body("B[0] = A[-1]"), "B[0] = A[15]");
    let looped = body("for i in T.serial(4):\n    B[i] = A[-i - 1]");
    assert_eq!(
        looped,
        "for i in serial(0, 4) {\n  B[i] = A[16 + (i * -1 - 1)]\n}"
    );
    // What is not certainly negative stays as it is.
    let dynamic = body("s = B[0]\nfor i in T.serial(4):\n    B[i] = A[s + i]");
    assert!(dynamic.contains("A[s + i]"), "{dynamic}");
    assert_eq!(code("B[0] = A[-17]"), "out-of-bounds");
    assert_eq!(code("B[0] = A[16]"), "out-of-bounds");
    assert_eq!(
        code("for i in T.serial(16, 20):\n    B[0] = A[i]"),
        "out-of-bounds"
    );
}

/// A grid of one block, or a loop of one iteration, does not make a halo count from the end.
#[test]
fn what_only_the_sizes_make_negative_is_outside() {
    for grid in [1, 2] {
        let text = format!(
            "import tilelang.language as T\n\
             @T.prim_func\n\
             def k(A: T.Tensor((16,), 'int32'), B: T.Tensor((16,), 'int32')):\n    \
                 with T.Kernel({grid}, threads=32) as bx:\n        \
                     B[0] = A[bx * 8 - 3]\n        \
                     p = bx * 8 - 3\n        \
                     B[1] = A[p]\n        \
                     for k in T.serial({grid}):\n            \
                         B[2] = A[k - 1]\n        \
                     B[3] = A[-1]\n"
        );
        let staged = run(&text, &[]).expect("it stages");
        let body = super::kernel_text(&staged);
        for line in [
            "B[0] = A[bx * 8 - 3]",
            "B[1] = A[p]",
            "B[2] = A[k - 1]",
            "B[3] = A[15]",
        ] {
            assert!(body.contains(line), "{line} is not in\n{body}");
        }
        // One block is told that it reads nothing there.
        let told = staged
            .warnings
            .iter()
            .filter(|w| w.code.0 == "out-of-bounds");
        assert_eq!(told.count(), if grid == 1 { 3 } else { 0 });
    }
    // Memory of the block has no outside that reads as zero.
    let code = code("S = T.alloc_shared((16,), 'int32')\nfor k in T.serial(1):\n    S[k - 1] = 0");
    assert_eq!(code, "out-of-bounds");
}

#[test]
fn pythons_print_is_told() {
    assert_eq!(
        super::warnings("print('x', 3)\nprint(A[0])"),
        ["python-print"; 2]
    );
}

#[test]
fn literals_take_the_language_types() {
    assert_eq!(
        body("F[0, 0] = F[0, 1] * 2"),
        "F[0, 0] = F[0, 1] * 2.0:float16"
    );
    assert_eq!(
        body("F[0, 0] = F[0, 1] * 2.0"),
        "F[0, 0] = float16(float32(F[0, 1]) * 2.0)"
    );
    assert_eq!(body("A[0] = 3000000000 - 2999999999"), "A[0] = 1");
    assert_eq!(
        body("x = T.int8(100) + T.int8(100)\nA[0] = x"),
        "A[0] = -56"
    );
    assert_eq!(code("A[0] = A[1] / A[2]"), "operand-types");
    assert_eq!(code("A[0] = A[1] // 0"), "operand-types");
    assert_eq!(code("A[0] = F[0, 0] // 2"), "operand-types");
    assert_eq!(code("A[0] = A[1] ** 2"), "operand-types");
    assert_eq!(code("A[F[0, 0]] = 1"), "index-type");
    assert_eq!(code("A[1.5] = 1"), "index-type");
}

#[test]
fn buffers_are_indexed_fully_and_inside() {
    for (lines, want) in [
        ("A[0, 0] = 1", "index-count"),
        ("F[0] = 1", "index-count"),
        ("A[...] = 1", "unsupported-syntax"),
        ("A[0:4] = 1", "bad-store"),
        ("A += 1", "bad-store"),
        ("A[0] = B", "bad-store"),
        ("T.copy(A[0:17], B)", "out-of-bounds"),
        ("T.copy(A[4:4], B)", "bad-slice"),
        ("T.copy(A[0:8:2], B[0:4])", "bad-slice"),
        ("T.copy(A[-4:16], B[0:4])", "bad-slice"),
        ("T.copy(A[0:4], B[0:5])", "copy-extents"),
        ("x = A[0] + B", "wrong-type"),
        ("x = A[0:4] + 1", "wrong-type"),
        ("A[0] = 'a'", "wrong-type"),
        ("A.x = 1", "unsupported-syntax"),
        ("S = T.alloc_shared((0,), 'int32')", "non-positive"),
        ("S = T.alloc_shared((A[0],), 'int32')", "shape"),
        ("S = T.alloc_shared((1.5,), 'int32')", "wrong-type"),
        ("S = T.alloc_shared((4,), 'int33')", "wrong-value"),
        ("S = T.alloc_shared((4,))", "wrong-arity"),
        (
            "S = T.alloc_shared((4,), 'int32', dtype='int8')",
            "wrong-arity",
        ),
        ("S = T.alloc_shared((4,), dtyp='int32')", "unknown-keyword"),
        ("T.alloc_shard((4,), 'int32')", "unknown-language-name"),
        ("with T.Kernel(2):\n    pass", "kernel-launch"),
    ] {
        assert_eq!(code(lines), want, "{lines}");
    }
    // A slice of known length has a constant extent, whatever its start.
    let text = body(
        "S = T.alloc_shared((8,), 'int32')\nn = bx * 8\ne = n + 8\nT.copy(A[n:e], S)\nT.copy(A[bx * 8 : (bx + 1) * 8], S)",
    );
    assert_eq!(text.matches("+: 8] -> S[0 +: 8]").count(), 2, "{text}");
}

#[test]
fn an_element_name_starts_a_copy_without_being_read() {
    let text = body("S = T.alloc_shared((8,), 'int32')\np = B[bx * 8]\nT.copy(S, p)");
    assert_eq!(
        text,
        "alloc S: shared int32[8]\ncopy S[0 +: 8] -> B[bx * 8 +: 8]"
    );
}

#[test]
fn every_statement_has_the_span_of_its_source() {
    let text = "import tilelang.language as T\n@T.prim_func\ndef k(A: T.Tensor((16,), 'int32')):\n    with T.Kernel(1) as bx:\n        x = A[0] + 1\n        for i in T.Parallel(16):\n            A[i] = x\n";
    let staged = run(text, &[]).unwrap();
    let mut seen = Vec::new();
    tilewright_ir::visit::walk_stmts(&staged.func.kernels[0].body, &mut |s| {
        seen.push(text[s.span.start as usize..s.span.end as usize].to_string());
        tilewright_ir::visit::stmt_exprs(s, &mut |e| {
            e.walk(&mut |e| assert!(!e.span().is_none() || e.as_int().is_some(), "{e:?}"));
        });
    });
    assert_eq!(seen[0], "x = A[0] + 1");
    assert!(seen[1].starts_with("for i in T.Parallel(16)"));
    assert_eq!(seen[2], "A[i] = x");
}

#[test]
fn growing_expressions_are_stopped() {
    let text = "import tilelang.language as T\ndef grow(x):\n    for i in range(100):\n        x = x + x\n    return x\n@T.prim_func\ndef k(A: T.Tensor((16,), 'int32')):\n    with T.Kernel(1) as bx:\n        A[0] = grow(A[1])\n";
    assert_eq!(
        run(text, &[]).unwrap_err()[0].code.0,
        "expression-too-large"
    );
    let deep = text
        .replace("x = x + x", "x = x + 1")
        .replace("range(100)", "range(100000)");
    assert_eq!(
        run(&deep, &[]).unwrap_err()[0].code.0,
        "expression-too-large"
    );
    let mut arms = String::from("if A[0] == 0:\n    A[1] = 0\n");
    for i in 1..10_000 {
        arms.push_str(&format!("elif A[0] == {i}:\n    A[1] = {i}\n"));
    }
    assert_eq!(code(&arms), "nested-too-deep");
}

#[test]
fn a_dtype_is_its_name_where_text_is_meant() {
    let value = |expr: &str| body(&format!("A[0] = {expr}"));
    for (text, expected) in [
        ("int(T.float16.startswith('float'))", 1),
        ("int('8_e4' in T.float8_e4m3fn)", 1),
        ("int(T.int8 in 'int8 int4')", 1),
        ("len(T.float16 + '_t')", 9),
        ("len('x' + T.bool)", 5),
        ("{'float16': 7}[T.float16]", 7),
        ("{T.float16: 7, T.int8: 8}['int8']", 8),
        ("T.DataType('bfloat16').bits", 16),
    ] {
        assert_eq!(value(text), format!("A[0] = {expected}"), "{text}");
    }
    assert_eq!(code("x = T.float16 + 1"), "operand-types");
    assert_eq!(code("x = 1 in T.float16"), "wrong-type");
}
