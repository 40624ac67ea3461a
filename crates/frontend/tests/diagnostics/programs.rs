//! Mistakes around a kernel: launches, entries, settings, files.

use tilewright_frontend::{SettingValue, stage};
use tilewright_ir::SourceMap;

use super::{case, check, files};

/// A whole file around one function.
fn module(text: &str) -> String {
    format!("import tilelang\nimport tilelang.language as T\n\n{text}")
}

#[test]
fn launches() {
    let kernel = |launch: &str| {
        module(&format!(
            "@T.prim_func\ndef kernel(A: T.Tensor((64,), \"float32\")):\n    with {launch} as bx:\n        A[0] = 1.0\n"
        ))
    };
    check!(files(&[
        ("zero threads", kernel("T.Kernel(1, threads=0)")),
        ("negative threads", kernel("T.Kernel(1, threads=-128)")),
        ("too many threads", kernel("T.Kernel(1, threads=2048)")),
        ("float threads", kernel("T.Kernel(1, threads=64.0)")),
        (
            "four thread axes",
            kernel("T.Kernel(1, threads=(1, 2, 3, 4))")
        ),
        ("empty grid", kernel("T.Kernel(0)")),
        ("four grid axes", kernel("T.Kernel(1, 1, 1, 1)")),
        ("float grid", kernel("T.Kernel(2.5)")),
        (
            "grid from memory",
            kernel("T.Kernel(A[0])").replace("float32", "int32")
        ),
        (
            "kernel in a kernel",
            module(
                "@T.prim_func\ndef kernel(A: T.Tensor((64,), \"float32\")):\n    with T.Kernel(1) as bx:\n        with T.Kernel(1) as by:\n            A[0] = 1.0\n"
            )
        ),
        (
            "fragment outside its kernel",
            module(
                "@T.prim_func\ndef kernel(A: T.Tensor((64,), \"float32\")):\n    with T.Kernel(1) as bx:\n        F = T.alloc_fragment((64,), \"float32\")\n        T.clear(F)\n    with T.Kernel(1) as bx:\n        T.copy(F, A)\n"
            )
        ),
        (
            "tile op outside a kernel",
            module("@T.prim_func\ndef kernel(A: T.Tensor((64,), \"float32\")):\n    T.clear(A)\n")
        ),
        (
            "cluster that does not divide the grid",
            kernel("T.ClusterKernel(6, 4, cluster_dims=(2, 3, 1))"),
        ),
        (
            "cluster of too many blocks",
            kernel("T.ClusterKernel(64, cluster_dims=(32, 1, 1))")
        ),
        (
            "cluster of T.Kernel that does not divide the grid",
            kernel("T.Kernel(6, cluster_dims=4)"),
        ),
    ]));
}

/// What blocks of a cluster do with each other.
#[test]
fn clusters() {
    let of = |launch: &str, body: &str| {
        let body = body.replace('\n', "\n        ");
        module(&format!(
            "@T.prim_func\ndef kernel(A: T.Tensor((64, 64), \"float16\")):\n    with T.Kernel(4, {launch}) as bx:\n        {body}\n"
        ))
    };
    let pairs = |body: &str| of("threads=128, cluster_dims=(2, 1, 1)", body);
    let alone = |body: &str| of("threads=128", body);
    let copy = |barrier: &str, way: &str| {
        pairs(&format!(
            "S = T.alloc_shared((64, 64), \"float16\")\nb = T.{barrier}(1)\nT.tma_copy({way})"
        ))
    };
    check!(files(&[
        (
            "rank without a cluster",
            alone("r = T.block_rank_in_cluster()")
        ),
        (
            "count without a cluster",
            alone("n = T.get_cluster_block_nums()")
        ),
        ("barrier of no cluster", alone("T.cluster_sync()")),
        (
            "arrival barrier of no cluster",
            alone("b = T.alloc_cluster_barrier(1)")
        ),
        (
            "barrier of the cluster at points",
            pairs("for i in T.Parallel(64):\n    T.cluster_sync()"),
        ),
        (
            "barrier of the cluster for some threads",
            pairs("if T.get_thread_binding() < 64:\n    T.cluster_sync()"),
        ),
        (
            "arrival at a barrier of one block",
            pairs("b = T.alloc_barrier(1)\nT.mbarrier_arrive(b, 1)"),
        ),
        (
            "arrival in a block that is not there",
            pairs("b = T.alloc_cluster_barrier(1)\nT.mbarrier_arrive(b, 2)"),
        ),
        (
            "arrival in half a block",
            pairs("b = T.alloc_cluster_barrier(1)\nT.mbarrier_arrive(b, 0.5)"),
        ),
        (
            "arrival elsewhere without a cluster",
            alone("b = T.alloc_barrier(1)\nT.mbarrier_arrive(b, 0)"),
        ),
        (
            "copy to a barrier of one block",
            copy("alloc_barrier", "A, S, barrier=b, cluster_mask=3"),
        ),
        (
            "copy to blocks that are not there",
            copy(
                "alloc_cluster_barrier",
                "A, S, barrier=b, cluster_mask=0b101"
            ),
        ),
        (
            "copy to blocks known later",
            copy("alloc_cluster_barrier", "A, S, barrier=b, cluster_mask=bx"),
        ),
        (
            "store to several blocks",
            copy("alloc_cluster_barrier", "S, A, cluster_mask=3"),
        ),
        (
            "copy to several blocks without a cluster",
            alone(
                "S = T.alloc_shared((64, 64), \"float16\")\nb = T.alloc_barrier(1)\nT.tma_copy(A, S, barrier=b, cluster_mask=3)"
            ),
        ),
        (
            "half of a barrier without a cluster",
            alone("T.cluster_arrive()"),
        ),
        (
            "half of a barrier for some threads",
            pairs("if T.get_thread_binding() < 64:\n    T.cluster_wait()"),
        ),
        (
            "a barrier that orders no memory",
            pairs("T.cluster_arrive_relaxed()"),
        ),
        (
            "copy between blocks",
            pairs("S = T.alloc_shared((64, 64), \"float16\")\nT.copy_cluster(S, S, dst_block=1)"),
        ),
        (
            "copy of a cluster in a loop",
            pairs(
                "S = T.alloc_shared((64, 64), \"float16\")\nfor k in T.serial(2):\n    T.copy_cluster(A, S, cluster_mask=3)"
            ),
        ),
        (
            "copy of a cluster without one",
            alone("S = T.alloc_shared((64, 64), \"float16\")\nT.copy_cluster(A, S)"),
        ),
        (
            "copy of a cluster from shared memory",
            pairs(
                "S = T.alloc_shared((64, 64), \"float16\")\nT.copy_cluster(S, A, cluster_mask=3)"
            ),
        ),
    ]));
}

#[test]
fn names_of_a_launch() {
    let kernel = |launch: &str, index: &str| {
        module(&format!(
            "@T.prim_func\ndef kernel(A: T.Tensor((64,), \"float32\")):\n    with {launch}:\n        for i in T.Parallel(8):\n            A[{index}] = 1.0\n"
        ))
    };
    check!(files(&[
        (
            "one name, multiplied",
            kernel("T.Kernel(2, 4) as b", "b * 8 + i")
        ),
        ("one name, added", kernel("T.Kernel(2, 4) as b", "b + i")),
        ("one name as an index", kernel("T.Kernel(2, 4) as b", "b")),
        ("two names for one", kernel("T.Kernel(8) as (bx, by)", "i")),
        (
            "two names for three",
            kernel("T.Kernel(2, 2, 2) as (bx, by)", "i")
        ),
    ]));
    // A tuple of indices may have one name.
    let taken = kernel("T.Kernel(2, 4) as b", "b[0] * 32 + b[1] * 8 + i");
    assert_eq!(super::render(&taken, &[]), "accepted");
}

#[test]
fn other_languages_and_places() {
    check!(files(&[
        (
            "a kernel of Triton",
            "import triton\nimport triton.language as tl\n\n@triton.autotune(configs=[], key=[\"n\"])\n@triton.jit\ndef add(x, n, B: tl.constexpr):\n    pid = tl.program_id(0)\n"
        ),
        (
            "a kernel of Numba",
            "from numba import cuda\n\n@cuda.jit\ndef add(x, y):\n    i = cuda.grid(1)\n"
        ),
        (
            "a kernel in a class",
            "import tilelang.language as T\n\nclass Copy:\n    def build(self):\n        @T.prim_func\n        def main(A: T.Tensor((8,), \"float32\")):\n            with T.Kernel(1):\n                T.clear(A)\n        return main\n"
        ),
        (
            "a kernel of another file",
            "from kernels import make\n\ndef build(N=8):\n    return make(N)\n"
        ),
    ]));
}

/// What is said although the kernel is accepted.
#[test]
fn said_of_accepted_kernels() {
    let tuned = module(
        "@tilelang.autotune(configs=[{\"block\": 32, \"dtype\": \"float16\"}, {\"block\": 64, \"dtype\": \"float32\"}])\n@tilelang.jit\ndef factory(N=64, block=None, dtype=None):\n    @T.prim_func\n    def kernel(A: T.Tensor((N,), dtype)):\n        with T.Kernel(N // block) as bx:\n            T.clear(A[bx * block:bx * block + block])\n    return kernel\n",
    );
    let one = module(
        "@T.prim_func\ndef kernel(A: T.Tensor((64,), \"float32\"), B: T.Tensor((64,), \"float32\")):\n    with T.Kernel(4) as bx:\n        T.copy(A[bx * 16], B[bx * 16])\n",
    );
    let printed = module(
        "@T.prim_func\ndef kernel(A: T.Tensor((64,), \"float32\")):\n    with T.Kernel(4) as bx:\n        print(A[bx])\n        T.clear(A)\n",
    );
    let mut out = String::new();
    for (name, source, settings) in [
        ("the first configuration", &tuned, vec![]),
        ("a part of one", &tuned, vec![("block", "16")]),
        ("a copy of one element", &one, vec![]),
        ("print", &printed, vec![]),
    ] {
        out += &format!("### {name}\n{}\n\n", said(source, &settings));
    }
    check!(out);
    let chosen = said(&tuned, &[("block", "16"), ("dtype", "float32")]);
    assert_eq!(chosen, "", "a kernel whose parameters all have values");
    let points = one.replace(
        "        T.copy(A[bx * 16], B[bx * 16])",
        "        for i in T.Parallel(16):\n            T.copy(A[bx * 16 + i], B[bx * 16 + i])",
    );
    assert_eq!(said(&points, &[]), "", "elements of a parallel loop");
}

/// Warnings and notes of a kernel that is accepted.
fn said(source: &str, settings: &[(&str, &str)]) -> String {
    let mut sources = SourceMap::new();
    let file = sources.add("kernel.py", source);
    let settings: Vec<_> = settings
        .iter()
        .map(|(name, text)| {
            (
                name.to_string(),
                SettingValue::parse(text).expect("a value"),
            )
        })
        .collect();
    let staged = stage(&sources, file, None, &settings).expect("the kernel is accepted");
    let texts: Vec<String> = staged
        .warnings
        .iter()
        .map(|d| d.render(&sources, false))
        .collect();
    texts.join("\n\n")
}

#[test]
fn entries_and_settings() {
    let factory = module(
        "@tilelang.jit(out_idx=[-1])\ndef factory(M, block=64):\n    @T.prim_func\n    def kernel(A: T.Tensor((M,), \"float32\"), B: T.Tensor((M,), \"float32\")):\n        with T.Kernel(T.ceildiv(M, block)) as bx:\n            T.copy(A[bx * block], B[bx * block])\n    return kernel\n",
    );
    let eager = |body: &str| module(&format!("@tilelang.jit\ndef kernel(A):\n{body}"));
    let mut out = String::new();
    let mut case = |name: &str, source: &str, settings: &[(&str, &str)]| {
        out += &case(name, source, settings);
    };
    case("missing setting", &factory, &[]);
    case(
        "unknown setting",
        &factory,
        &[("M", "64"), ("blocks", "32")],
    );
    case("setting that is no literal", &factory, &[("M", "64 +")]);
    case("setting of the wrong type", &factory, &[("M", "\"many\"")]);
    case("setting that makes no sense", &factory, &[("M", "-64")]);
    case(
        "out_idx out of range",
        &factory.replace("[-1]", "[2]"),
        &[("M", "64")],
    );
    case(
        "out_idx named twice",
        &factory.replace("[-1]", "[1, -1]"),
        &[("M", "64")],
    );
    case(
        "out_idx on an eager kernel",
        &module(
            "@tilelang.jit(out_idx=[-1])\ndef kernel(A):\n    M = T.const(\"M\")\n    A: T.Tensor[[M], T.float32]\n    with T.Kernel(1) as bx:\n        A[0] = 1.0\n",
        ),
        &[("M", "64")],
    );
    case(
        "const that is no dimension",
        &eager(
            "    M = T.const(\"M\")\n    A: T.Tensor[[M * 2], T.float32]\n    with T.Kernel(1) as bx:\n        A[0] = 1.0\n",
        ),
        &[("M", "64")],
    );
    case(
        "const without a value",
        &eager(
            "    M = T.const(\"M\")\n    A: T.Tensor[[M], T.float32]\n    with T.Kernel(1) as bx:\n        A[0] = 1.0\n",
        ),
        &[],
    );
    case(
        "an output that is not returned",
        &eager(
            "    M = T.const(\"M\")\n    A: T.Tensor[[M], T.float32]\n    B = T.empty((M,), T.float32)\n    C = T.empty((M,), T.float32)\n    with T.Kernel(1) as bx:\n        B[0] = A[0]\n    return B\n",
        ),
        &[("M", "64")],
    );
    case("no kernel", "import tilelang\nx = 3\n", &[]);
    case(
        "a parameter without annotation",
        &module("@T.prim_func\ndef kernel(A):\n    with T.Kernel(1) as bx:\n        A[0] = 1.0\n"),
        &[],
    );
    case(
        "a function that launches nothing",
        &module("@T.prim_func\ndef kernel(A: T.Tensor((4,), \"float32\")):\n    pass\n"),
        &[],
    );
    check!(out);
}

#[test]
fn files_and_syntax() {
    let deep = format!("x = {}1{}\n", "(".repeat(10_000), ")".repeat(10_000));
    let large = "# filler\n".repeat(10 * 1024 * 1024 / 9 + 1);
    let indented = (0..500).fold(String::new(), |text, i| {
        text + &format!("{}if x:\n", " ".repeat(i))
    });
    check!(files(&[
        ("not Python", "def kernel(:\n    pass\n".to_string()),
        ("unclosed bracket", "x = (1,\n".to_string()),
        ("bad indentation", "def f():\nreturn 1\n".to_string()),
        ("empty", String::new()),
        ("white space", "  \n\n".to_string()),
        ("brackets 10,000 deep", deep),
        ("blocks 500 deep", indented),
        ("10 MB", large),
        (
            "syntax that a kernel cannot have",
            module(
                "@T.prim_func\ndef kernel(A: T.Tensor((4,), \"float32\")):\n    with T.Kernel(1) as bx:\n        try:\n            A[0] = 1.0\n        except ValueError:\n            pass\n"
            )
        ),
    ]));
}

#[test]
fn a_file_that_is_not_utf8() {
    let mut sources = SourceMap::new();
    let bytes = b"x = 1\ny = 'caf\xe9'\n".to_vec();
    let error = tilewright_frontend::add_source(&mut sources, "kernel.py", bytes);
    check!(error.expect_err("not UTF-8").render(&sources, false));
}

#[test]
fn a_file_that_is_too_large() {
    let mut sources = SourceMap::new();
    let bytes = b"# filler\n".repeat(200_000);
    let error = tilewright_frontend::add_source(&mut sources, "kernel.py", bytes);
    check!(error.expect_err("too large").render(&sources, false));
}
