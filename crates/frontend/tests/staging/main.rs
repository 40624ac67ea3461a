//! Staging end to end: source text in, tile IR out.

use tilewright_frontend::{SettingValue, Staged, stage};
use tilewright_ir::small_float::Number;
use tilewright_ir::text::print;
use tilewright_ir::{Diagnostic, SourceMap};

fn run(text: &str, set: &[(&str, &str)]) -> Result<Staged, Vec<Diagnostic>> {
    let mut sources = SourceMap::new();
    let file = sources.add("k.py", text);
    let set: Vec<(String, SettingValue)> = set
        .iter()
        .map(|(n, v)| (n.to_string(), SettingValue::parse(v).expect("a literal")))
        .collect();
    stage(&sources, file, None, &set)
}

/// The lines of the kernel's body, for a body written on tensors A and B of 16 elements.
fn body(lines: &str) -> String {
    match try_body(lines) {
        Ok(text) => text,
        Err(d) => panic!("{}: {}\n{lines}", d.code, d.message),
    }
}

fn try_body(lines: &str) -> Result<String, Box<Diagnostic>> {
    let lines: String = lines.lines().map(|l| format!("        {l}\n")).collect();
    let text = format!(
        "import tilelang.language as T\n\
         @T.prim_func\n\
         def k(A: T.Tensor((16,), 'int32'), B: T.Tensor((16,), 'int32'), F: T.Tensor((4, 8), 'float16')):\n    \
             with T.Kernel(2, threads=32) as bx:\n{lines}"
    );
    let staged = run(&text, &[]).map_err(|d| Box::new(d[0].clone()))?;
    Ok(kernel_text(&staged))
}

/// What the printer writes between the braces of the kernel.
fn kernel_text(staged: &Staged) -> String {
    let text = print(&staged.func);
    let lines = text
        .lines()
        .skip_while(|l| !l.trim_start().starts_with("kernel"));
    let body = lines.skip(1).take_while(|l| l.starts_with("    "));
    let body: Vec<&str> = body.map(|l| &l[4..]).collect();
    body.join("\n")
}

fn code(lines: &str) -> String {
    match try_body(lines) {
        Ok(text) => panic!("staged:\n{text}"),
        Err(d) => d.code.0.to_string(),
    }
}

/// The warnings of a body that stages.
fn warnings(lines: &str) -> Vec<&'static str> {
    let lines: String = lines.lines().map(|l| format!("        {l}\n")).collect();
    let text = format!(
        "import tilelang.language as T\n\
         @T.prim_func\n\
         def k(A: T.Tensor((16,), 'int32')):\n    \
             with T.Kernel(2, threads=32) as bx:\n{lines}"
    );
    let staged = run(&text, &[]).unwrap();
    staged.warnings.iter().map(|w| w.code.0).collect()
}

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
        "alloc i: var int32 = 0\nfor k in serial(0, 4) {\n  i[] = i[] + 1\n}\nA[0] = i[]"
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
        "alloc v: var int32 = 0\nlet y: int32 = v[]\nv[] = 3\nA[0] = y"
    );
}

#[test]
fn vector_12_swaps_and_refusals() {
    assert_eq!(
        body("a = T.alloc_var('int32', 1)\nb = T.alloc_var('int32', 2)\na, b = b, a"),
        "alloc a: var int32 = 1\nalloc b: var int32 = 2\nlet a.1: int32 = b[]\n\
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
fn vector_13_a_const_must_be_a_dimension() {
    let kernel = |annotations: &str| {
        format!(
            "import tilelang\nimport tilelang.language as T\n\
             @tilelang.jit\n\
             def k(A, B):\n    \
                 M = T.const('M')\n{annotations}    \
                 with T.Kernel(1) as bx:\n        \
                     A[0] = B[0]\n"
        )
    };
    let both = kernel("    A: T.Tensor[[M * 2], 'int32']\n    B: T.Tensor[[M], 'int32']\n");
    let staged = run(&both, &[("M", "8")]).unwrap();
    assert!(print(&staged.func).contains("param A: int32[16]"));
    let only = kernel("    A: T.Tensor[[M * 2], 'int32']\n    B: T.Tensor[[M + 1], 'int32']\n");
    assert_eq!(
        run(&only, &[("M", "8")]).unwrap_err()[0].code.0,
        "const-unresolved"
    );
    let missing = run(&both, &[]).unwrap_err();
    assert_eq!(missing[0].code.0, "missing-setting");
    assert_eq!(missing[0].help, ["pass `--set M=…`"]);
    for bad in ["0", "-1", "1.5", "'a'", "float16"] {
        assert_eq!(
            run(&both, &[("M", bad)]).unwrap_err()[0].code.0,
            "bad-setting",
            "{bad}"
        );
    }
    let unknown = run(&both, &[("M", "8"), ("Mn", "1")]).unwrap_err();
    assert_eq!(unknown[0].code.0, "unknown-setting");
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
        "alloc i: var int32 = 0\nwhile i[] < 10 {\n  if A[i[]] == 0 {\n    break\n  }\n  i[] = i[] + 1\n}"
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
        "alloc v: var int32 = 0\nlet x: int32 = v[]\nlet A_: int32 = x + 1\nA[0] = A_"
    );
    let inc = "@T.macro\ndef inc(x: T.Ref):\n    x += 1\n";
    assert_eq!(
        with_macro(inc, "v = T.alloc_var('int32')\ninc(v)\ninc(A[bx + 1])").unwrap(),
        "alloc v: var int32 = 0\nv[] = v[] + 1\nlet index: int32 = bx + 1\nA[index] = A[index] + 1"
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
fn factories_take_settings_defaults_and_configs() {
    let text = r#"
import itertools
import torch
import tilelang
import tilelang.language as T
from tilelang.autotuner import autotune

def get_configs():
    return [dict(block=b, stages=s) for b, s in itertools.product([64, 128], [1, 2])]

@autotune(configs=get_configs(), warmup=3)
@tilelang.jit(out_idx=[-1], pass_configs={"tl.disable": True})
def scale(N, block, stages, dtype="float16", fast: bool = False):
    assert N % block == 0, f"{N} is not a multiple of {block}"
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), s: T.float32, B: T.Tensor((N,), dtype)):
        with T.Kernel(N // block, threads=block) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * s
    return main

def bench():
    torch.randn(1)
"#;
    let staged = run(text, &[("N", "256")]).unwrap();
    let printed = print(&staged.func);
    assert!(printed.contains("grid(bx: 4)"), "{printed}");
    assert_eq!(staged.func.attrs.autotune.len(), 4);
    assert_eq!(
        staged.func.tensors().map(|t| t.1).collect::<Vec<_>>(),
        [false, true]
    );
    let staged = run(
        text,
        &[("N", "256"), ("block", "128"), ("dtype", "bfloat16")],
    )
    .unwrap();
    let printed = print(&staged.func);
    assert!(
        printed.contains("grid(bx: 2)") && printed.contains("bfloat16[256]"),
        "{printed}"
    );
    for (set, want, part) in [
        (vec![], "missing-setting", "--set N=…"),
        (
            vec![("N", "100")],
            "assertion",
            "100 is not a multiple of 64",
        ),
        (
            vec![("N", "256"), ("blok", "64")],
            "unknown-setting",
            "did you mean `block`?",
        ),
        (
            vec![("N", "256"), ("dtype", "3")],
            "bad-setting",
            "the name of a dtype",
        ),
        (
            vec![("N", "256"), ("fast", "1")],
            "bad-setting",
            "True or False",
        ),
        (vec![("N", "'x'")], "python-error", ""),
    ] {
        let d = &run(text, &set).unwrap_err()[0];
        assert_eq!(d.code.0, want, "{set:?}: {}", d.message);
        let said = format!("{} {} {}", d.message, d.notes.join(" "), d.help.join(" "));
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn settings_give_values_to_scalars_of_the_launch() {
    let text = r#"
import tilelang.language as T

def scale(N=64, beta=3):
    @T.prim_func
    def main(
        A: T.Tensor((N,), "float32"), alpha: T.float32, beta: T.float32, shift: T.int8,
        on: T.bool, B: T.Tensor((N,), "float32"),
    ):
        with T.Kernel(1, threads=64) as bx:
            for i in T.Parallel(N):
                B[i] = T.if_then_else(on, A[i] * alpha + beta, T.cast(shift, "float32"))
    return main
"#;
    let set = [
        ("alpha", "2"),
        ("beta", "5"),
        ("shift", "-128"),
        ("on", "True"),
    ];
    let staged = run(text, &set).unwrap();
    let value = |name: &str| staged.scalar_values.get(name).copied();
    assert_eq!(value("alpha"), Some(Number::Float(2.0)));
    assert_eq!(value("shift"), Some(Number::Int(-128)));
    assert_eq!(value("on"), Some(Number::Int(1)));
    // A parameter of the factory comes first.
    assert_eq!(value("beta"), None);
    assert!(staged.symbol_values.is_empty());
    for (set, want, part) in [
        (("alpha", "True"), "bad-setting", "takes a number (float32)"),
        (("alpha", "'x'"), "bad-setting", "takes a number (float32)"),
        (("shift", "1.5"), "bad-setting", "takes an int (int8)"),
        (("shift", "128"), "bad-setting", "int8 holds -128 to 127"),
        (("on", "1"), "bad-setting", "takes True or False"),
        (("alpa", "1"), "unknown-setting", "did you mean `alpha`?"),
        (("A", "1"), "unknown-setting", "names no parameter"),
    ] {
        let d = &run(text, &[set]).unwrap_err()[0];
        assert_eq!(d.code.0, want, "{set:?}: {}", d.message);
        let said = format!("{} {} {}", d.message, d.notes.join(" "), d.help.join(" "));
        assert!(said.contains(part), "{said}");
    }
    // A kernel without a factory has scalars too.
    let plain = "import tilelang.language as T\n\
         @T.prim_func\n\
         def k(A: T.Tensor((16,), 'int32'), n: T.int32):\n    \
             with T.Kernel(1, threads=32) as bx:\n        \
                 A[0] = n\n";
    let staged = run(plain, &[("n", "7")]).unwrap();
    assert_eq!(staged.scalar_values.get("n"), Some(&Number::Int(7)));
    assert_eq!(
        run(plain, &[("A", "7")]).unwrap_err()[0].code.0,
        "unknown-setting"
    );
}

#[test]
fn eager_kernels_return_their_outputs() {
    let kernel = |ending: &str| {
        format!(
            "import tilelang\nimport tilelang.language as T\n\
             @tilelang.jit\n\
             def add(A, B, block: int = 64):\n    \
                 M, N = T.const('M, N')\n    \
                 A: T.Tensor[[M, N], T.float32]\n    \
                 B: T.Tensor((M, N), T.float32)\n    \
                 C = T.empty((M, N), T.float32)\n    \
                 D = T.empty(M, dtype=T.int32)\n    \
                 with T.Kernel(M, threads=block) as bx:\n        \
                     for j in T.Parallel(N):\n            \
                         C[bx, j] = A[bx, j] + B[bx, j]\n        \
                     D[bx] = 0\n{ending}"
        )
    };
    let set = [("M", "4"), ("N", "64"), ("block", "32")];
    let staged = run(&kernel("    return D, C\n"), &set).unwrap();
    let names: Vec<&str> = staged
        .func
        .tensors()
        .map(|(b, _)| staged.func.buffers[b].name.as_str())
        .collect();
    assert_eq!(names, ["A", "B", "D", "C"]);
    assert_eq!(staged.func.tensors().filter(|t| t.1).count(), 2);
    for ending in [
        "",
        "    return C\n",
        "    return C, D, A\n",
        "    return C, C\n",
        "    return 1\n",
    ] {
        assert_eq!(
            run(&kernel(ending), &set).unwrap_err()[0].code.0,
            "outputs",
            "{ending}"
        );
    }
    let with_out_idx =
        kernel("    return C, D\n").replace("@tilelang.jit\n", "@tilelang.jit(out_idx=[0])\n");
    assert_eq!(run(&with_out_idx, &set).unwrap_err()[0].code.0, "out-idx");
}

#[test]
fn out_idx_is_checked() {
    let kernel = |out_idx: &str| {
        format!(
            "import tilelang\nimport tilelang.language as T\n\
             @tilelang.jit(out_idx={out_idx})\n\
             def f():\n    \
                 @T.prim_func\n    \
                 def main(A: T.Tensor((4,), 'int32'), n: T.int32, B: T.Tensor((4,), 'int32')):\n        \
                     with T.Kernel(1) as bx:\n            \
                         B[0] = A[n]\n    \
                 return main\n"
        )
    };
    for good in ["[-1]", "2", "-1", "[0, 2]", "None", "(-3,)"] {
        assert!(run(&kernel(good), &[]).is_ok(), "{good}");
    }
    for bad in ["3", "[-4]", "[1]", "[2, -1]"] {
        assert_eq!(
            run(&kernel(bad), &[]).unwrap_err()[0].code.0,
            "out-idx",
            "{bad}"
        );
    }
    assert_eq!(
        run(&kernel("['a']"), &[]).unwrap_err()[0].code.0,
        "wrong-type"
    );
}

#[test]
fn dynamic_sizes_are_symbols() {
    let text = "import tilelang.language as T\nm = T.dynamic('m')\n@T.prim_func\ndef k(A: T.Tensor((m, 8), 'int32')):\n    with T.Kernel((m + 3) // 4) as bx:\n        A[bx, 0] = m\n";
    let staged = run(text, &[("m", "12")]).unwrap();
    assert_eq!(staged.func.symbols.len(), 1);
    assert_eq!(staged.symbol_values.get("m"), Some(&12));
}

#[test]
fn files_without_a_kernel_say_so() {
    for (text, want) in [
        ("x = 1\n", "no-kernel"),
        ("", "empty-file"),
        ("  \n\n", "empty-file"),
        ("def f(:\n", "syntax"),
        (
            "import tilelang.language as T\n@T.prim_func\ndef k(A):\n    pass\n",
            "parameter-annotation",
        ),
        (
            "import tilelang.language as T\n@T.prim_func\ndef k(A: T.Tensor):\n    pass\n",
            "parameter-annotation",
        ),
        (
            "import tilelang.language as T\n@T.prim_func\ndef k(A: T.Tensor((4,), 'int32')):\n    pass\n",
            "not-a-kernel",
        ),
        (
            "import tilelang.language as T\n@T.prim_func\ndef k(A: T.Tensor((4,), 'int32')):\n    A[0] = 1\n",
            "outside-kernel",
        ),
        (
            "import tilelang\n@tilelang.jit\ndef f():\n    return 3\n",
            "not-a-kernel",
        ),
    ] {
        assert_eq!(run(text, &[]).unwrap_err()[0].code.0, want, "{text}");
    }
    let mut sources = SourceMap::new();
    let file = sources.add(
        "k.py",
        "import tilelang\n@tilelang.jit\ndef matmul():\n    return 3\n",
    );
    let d = &stage(&sources, file, Some("matmull"), &[]).unwrap_err()[0];
    assert_eq!(d.code.0, "no-kernel");
    assert_eq!(d.help, ["did you mean `matmul`?"]);
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

/// Forms of factories that existing files use.
#[test]
fn factories_in_all_their_forms() {
    let inner = "    @T.prim_func
    def main(A: T.Tensor((N,), 'int32'), B: T.Tensor((N,), 'int32')):
        with T.Kernel(N // block, threads=block) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] + 1
";
    let deeper: String = inner.lines().map(|l| format!("    {l}\n")).collect();
    let head = "import tilelang\nimport tilelang as tl\nimport tilelang.language as T\nfrom tilelang.autotuner import *\n";
    let cases = [
        // A factory that compiles what it returns.
        (
            format!(
                "{head}def f(N=64, block=32):\n{inner}    return tilelang.compile(main, out_idx=[1])\n"
            ),
            1,
        ),
        // A factory that returns a factory, tuned or not.
        (
            format!(
                "{head}def f(N=64):\n    @tl.jit(out_idx=-1)\n    def g(block):\n{deeper}        return main\n    return g\n"
            ),
            1,
        ),
        (
            format!(
                "{head}def f(N=64):\n    def g(block):\n{deeper}        return main\n    return g\n"
            ),
            0,
        ),
        (
            format!(
                "{head}def f(N=64):\n    @autotune(configs=[dict(block=32)], warmup=1)\n    @jit(out_idx=[-1])\n    def g(block=None):\n{deeper}        return main\n    return g()\n"
            ),
            1,
        ),
        (
            format!(
                "{head}@autotune(configs=[dict(block=32)])\n@jit\ndef f(N=64, block=None):\n{inner}    return main\n"
            ),
            0,
        ),
        (
            format!(
                "{head}configs = {{tilelang.PassConfigKey.TL_FAST: True}}\n@tilelang.jit(pass_configs=configs)\ndef f(N=64, block=32):\n{inner}    return main\n"
            ),
            0,
        ),
        // A helper that holds a kernel stands before the kernel that is meant.
        (
            format!(
                "{head}def tune(N, block):\n{inner}    return main\n@tilelang.jit(out_idx=[1])\ndef f(N=64, block=32):\n    return tune(N, block)\n"
            ),
            1,
        ),
        (
            format!(
                "{head}@tilelang.jit\ndef f(N=64, block=32):\n{inner}    return main.prim_func\n"
            ),
            0,
        ),
    ];
    for (text, outputs) in &cases {
        let set: &[(&str, &str)] = if text.contains("def g(block)") {
            &[("block", "32")]
        } else {
            &[]
        };
        let staged = match run(text, set) {
            Ok(staged) => staged,
            Err(d) => panic!("{}: {}\n{text}", d[0].code, d[0].message),
        };
        assert!(print(&staged.func).contains("grid(bx: 2)"), "{text}");
        assert_eq!(
            staged.func.tensors().filter(|t| t.1).count(),
            *outputs,
            "{text}"
        );
    }
    let d = run(&cases[1].0, &[]).unwrap_err();
    assert_eq!(d[0].code.0, "missing-setting");
}

#[test]
fn constants_of_the_older_modules() {
    let text = "from tvm import tir\nfrom tilelang import DataType, language as T\n\
        def unpack(val, pos):\n    assert val.dtype == 'int32'\n    mask = tir.const((1 << 4) - 1, 'int32')\n    return (val >> (pos.astype('int32') * tir.const(4, 'int32'))) & mask\n\
        @T.prim_func\ndef k(A: T.Tensor((16,), 'int32')):\n    with T.Kernel(1) as bx:\n        n = 128 // DataType('float16').bits\n        for i in T.serial(n):\n            A[i] = unpack(A[i], i % 2)\n";
    let staged = run(text, &[]).unwrap();
    assert_eq!(
        kernel_text(&staged),
        "for i in serial(0, 8) {\n  A[i] = A[i] >> i % 2 * 4 & 15\n}"
    );
}
