//! Control flow: ranges, conditions, loops, blocks and macros.

use super::{body, code, kernel_text, run, warnings};

#[test]
fn vector_15_ranges_are_pythons() {
    assert_eq!(
        body("for i in range(10, 0, -3):\n    A[i] = i"),
        "for i in serial(10, 0, -3) {\n  A[i] = i\n}"
    );
    assert_eq!(
        body("for i in T.serial(5, 2):\n    A[i] = i"),
        "for i in serial(5, 2) {\n  A[i] = i\n}"
    );
    assert_eq!(
        code("for i in T.serial(0, 4, 0):\n    A[i] = i"),
        "bad-loop"
    );
    assert_eq!(code("for i in range(4, 0, 0):\n    A[i] = i"), "bad-loop");
}

#[test]
fn conditions_are_decided_or_recorded() {
    assert_eq!(
        body("n = 3\nif n > 2:\n    A[0] = 1\nelse:\n    A[0] = 2"),
        "A[0] = 1"
    );
    assert_eq!(
        body("if A[0] > 0:\n    A[1] = 1\nelif A[0] < -1:\n    A[1] = 2\nelse:\n    A[1] = 3"),
        "if A[0] > 0 {\n  A[1] = 1\n} else {\n  if A[0] < -1 {\n    A[1] = 2\n  } else {\n    A[1] = 3\n  }\n}"
    );
    assert_eq!(
        body("A[0] = A[1] if A[2] > 0 else 7"),
        "A[0] = if_then_else(A[2] > 0, A[1], 7)"
    );
    assert_eq!(
        body("if 0 <= A[0] < 16:\n    A[1] = 1"),
        "if 0 <= A[0] && A[0] < 16 {\n  A[1] = 1\n}"
    );
    assert_eq!(
        body("if A[0]:\n    A[1] = 1"),
        "if A[0] != 0 {\n  A[1] = 1\n}"
    );
    assert_eq!(code("if A:\n    A[1] = 1"), "condition");
    assert_eq!(code("if F[0, 0]:\n    A[1] = 1"), "condition");
    assert_eq!(
        body("x: T.int32 = A[0] + 1\nA[1] = x"),
        "let x: int32 = A[0] + 1\nA[1] = x"
    );
    assert_eq!(
        body("x = y = A[0]\nA[1] = x + y"),
        "let x: int32 = A[0]\nA[1] = x + x"
    );
}

#[test]
fn names_end_with_their_block() {
    for lines in [
        "if A[0] > 0:\n    y = 1\nA[1] = y",
        "y = 0\nif A[0] > 0:\n    y = 1\nA[1] = y",
        "y = 0\nif A[0] > 0:\n    pass\nelse:\n    y = A[1]\nA[1] = y",
        "for i in T.serial(4):\n    y = A[i]\nA[1] = y",
        "for i in T.serial(4):\n    pass\nA[1] = i",
        "acc = 0\nfor i in T.serial(4):\n    acc = acc + A[i]\nA[1] = acc",
        "for i in T.serial(4):\n    S = T.alloc_shared((4,), 'int32')\nS[0] = 1",
        "while A[0] > 0:\n    y = A[1]\nA[2] = y",
        "if A[0] > 0:\n    for i in [1]:\n        z = 5\nA[0] = z",
    ] {
        assert_eq!(code(lines), "name-out-of-region", "{lines}");
    }
    // Each arm starts from what was known before the `if`.
    assert_eq!(
        body("y = 1\nif A[0] > 0:\n    y = 2\n    A[1] = y\nelse:\n    A[1] = y"),
        "if A[0] > 0 {\n  A[1] = 2\n} else {\n  A[1] = 1\n}"
    );
    // A buffer of one kernel is no buffer of the next.
    let text = "import tilelang.language as T\n@T.prim_func\ndef k(A: T.Tensor((16,), 'int32')):\n    with T.Kernel(1):\n        S = T.alloc_shared((16,), 'int32')\n    with T.Kernel(1):\n        S[0] = 1\n";
    assert_eq!(run(text, &[]).unwrap_err()[0].code.0, "name-out-of-region");
}

#[test]
fn rebinding_in_a_loop_is_warned_about() {
    assert_eq!(
        warnings("x = A[0]\nfor i in T.serial(4):\n    x = x + 1\n    A[i] = x"),
        ["rebound"]
    );
    assert_eq!(
        warnings("for i in T.serial(4):\n    x = A[i]\n    x = x + 1\n    A[i] = x"),
        [""; 0]
    );
    assert_eq!(warnings("A[0] = 1.5"), ["lossy-store"]);
    assert_eq!(warnings("A[0] = T.cast(1.5, 'int32')"), [""; 0]);
    assert_eq!(
        warnings("for i in T.serial(4):\n    break\n    A[i] = 1"),
        ["unreachable"]
    );
}

#[test]
fn loops_and_jumps() {
    assert_eq!(
        body(
            "i = T.alloc_var('int32')\nwhile i < 10:\n    if A[i] == 0:\n        break\n    i += 1"
        ),
        "alloc i: var int32\ni[] = 0\nwhile i[] < 10 {\n  if A[i[]] == 0 {\n    break\n  }\n  i[] = i[] + 1\n}"
    );
    assert_eq!(
        body("for i, j in T.Parallel(4, 8):\n    F[i, j] = i + j"),
        "for i, j in parallel(4, 8) {\n  F[i, j] = float16(i + j)\n}"
    );
    assert_eq!(
        body("for i in T.Parallel(4):\n    for j in T.Parallel(8):\n        F[i, j] = 0"),
        "for i, j in parallel(4, 8) {\n  F[i, j] = 0.0:float16\n}"
    );
    assert_eq!(
        body("for i in range(3):\n    if i == 1:\n        continue\n    A[i] = 1"),
        "for i in serial(0, 3) {\n  if i == 1 {\n    continue\n  }\n  A[i] = 1\n}"
    );
    for (lines, want) in [
        (
            "for i in T.Parallel(4):\n    A[i] = 0\n    for j in T.Parallel(8):\n        F[i, j] = 0",
            "bad-loop",
        ),
        ("for i in T.Parallel(4):\n    break", "control-flow"),
        ("break", "control-flow"),
        (
            "for i in [1, 2]:\n    if A[0] > 0:\n        break",
            "control-flow",
        ),
        ("for i in T.serial(4):\n    return", "control-flow"),
        ("for i in A:\n    pass", "wrong-type"),
        ("for i in T.serial(1.5):\n    pass", "bad-loop"),
        (
            "S = T.alloc_shared((16,), 'int32')\nfor i in T.Parallel(4):\n    T.copy(A, S)",
            "bad-loop",
        ),
        (
            "L = T.alloc_local((4,), 'int32')\nfor i in T.Parallel(4):\n    L[i] = 0",
            "buffer-scope",
        ),
        (
            "X = T.alloc_fragment((4,), 'int32')\nX[1] = 0",
            "buffer-scope",
        ),
        ("x = [i for i in T.serial(4)]", "bad-loop"),
    ] {
        assert_eq!(code(lines), want, "{lines}");
    }
}

#[test]
fn macros_pass_by_value_or_reference() {
    let with_macro = |definition: &str, lines: &str| {
        let lines: String = lines.lines().map(|l| format!("        {l}\n")).collect();
        let text = format!(
            "import tilelang.language as T\n{definition}\n\
             @T.prim_func\n\
             def k(A: T.Tensor((16,), 'int32')):\n    \
                 with T.Kernel(2, threads=32) as bx:\n{lines}"
        );
        run(&text, &[])
            .map(|s| kernel_text(&s))
            .map_err(|d| d[0].code.0)
    };
    let add = "@T.macro\ndef add(x, y):\n    A_ = x + y\n    return A_\n";
    assert_eq!(
        with_macro(add, "v = T.alloc_var('int32')\nA[0] = add(v, 1)").unwrap(),
        "alloc v: var int32\nv[] = 0\nlet x: int32 = v[]\nlet A_: int32 = x + 1\nA[0] = A_"
    );
    let inc = "@T.macro\ndef inc(x: T.Ref):\n    x += 1\n";
    assert_eq!(
        with_macro(inc, "v = T.alloc_var('int32')\ninc(v)\ninc(A[bx + 1])").unwrap(),
        "alloc v: var int32\nv[] = 0\nv[] = v[] + 1\nlet index: int32 = bx + 1\nA[index] = A[index] + 1"
    );
    assert_eq!(with_macro(inc, "inc(3)"), Err("bad-macro"));
    let early = "@T.macro\ndef early(x):\n    if x > 0:\n        return 1\n    return 2\n";
    assert_eq!(with_macro(early, "A[0] = early(A[1])"), Err("control-flow"));
    assert_eq!(with_macro(early, "A[0] = early(1)").unwrap(), "A[0] = 1");
    let store = "@T.macro\ndef put(x):\n    y = x + 1\n    return y\n";
    assert_eq!(
        with_macro(store, "A[0] = put(A[1]) if A[2] > 0 else 0"),
        Err("bad-macro")
    );
    // A plain function is plain Python.
    let plain =
        "def twice(x):\n    s = 0\n    for i in range(2):\n        s = s + x\n    return s\n";
    assert_eq!(
        with_macro(plain, "A[0] = twice(A[1])").unwrap(),
        "A[0] = A[1] + A[1]"
    );
}

#[test]
fn arms_that_whole_warp_groups_take() {
    let kernel = |lines: &str| {
        let lines: String = lines.lines().map(|l| format!("        {l}\n")).collect();
        let text = format!(
            "import tilelang.language as T\n\
             @T.prim_func\n\
             def k(A: T.Tensor((64,), 'int32')):\n    \
                 with T.Kernel(2, threads=(128, 3)) as bx:\n        \
                     x = T.get_thread_binding(0)\n        \
                     y = T.get_thread_binding(1)\n        \
                     s = T.alloc_shared((64,), 'int32')\n{lines}"
        );
        run(&text, &[])
            .map(|staged| kernel_text(&staged))
            .map_err(|d| d[0].code.0)
    };
    let regions = |lines: &str| {
        let text = kernel(lines).expect("it stages");
        let heads = text.lines().filter(|l| l.ends_with('{'));
        heads.map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        regions("if y == 1:\n    T.clear(s)\nelse:\n    T.fill(s, 1)"),
        ["warp_group 1 {", "warp_group 0, 2 {"]
    );
    assert_eq!(
        regions(
            "g = T.get_warp_group_idx()\nif g == 2:\n    T.clear(s)\nelif g == 0:\n    T.fill(s, 1)\nelse:\n    T.fill(s, 2)"
        ),
        ["warp_group 2 {", "warp_group 0 {", "warp_group 1 {"]
    );
    assert_eq!(
        regions("if x + y * 128 >= 128 and not y > 1:\n    T.clear(s)"),
        ["warp_group 1 {"]
    );
    // Threads' own work, and what other values decide, stays a condition.
    assert_eq!(regions("if y == 1:\n    A[x % 64] = 1"), ["if ty == 1 {"]);
    assert_eq!(regions("if bx == 1:\n    T.clear(s)"), ["if bx == 1 {"]);
    // Parts of a group, and groups that are parted twice.
    assert_eq!(
        kernel("if x < 64:\n    T.clear(s)"),
        Err("divergent-collective")
    );
    assert_eq!(
        kernel("if y < 2:\n    T.clear(s)\n    if y < 1:\n        T.fill(s, 1)"),
        Err("warp-group")
    );
}
