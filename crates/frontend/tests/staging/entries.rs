//! What is staged of a file: factories, eager kernels, their settings and sizes.

use tilewright_frontend::stage;
use tilewright_ir::SourceMap;
use tilewright_ir::small_float::Number;
use tilewright_ir::text::print;

use super::{kernel_text, run};

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
