//! Mistakes in the statements of a kernel.

use super::{TEMPLATE, case, check, family};

#[test]
fn copies() {
    check!(family(&[
        ("both buffers, shapes differ", "T.copy(S, R)"),
        (
            "regions with other extents",
            "T.copy(A[0:32, 0:32], S[0:32, 0:16])"
        ),
        (
            "symbolic extents that differ",
            "T.copy(A[bx * 16:(bx + 1) * 16, :], S[0:32, :])"
        ),
        ("broadcast of a row", "T.copy(A[0:1, :], S)"),
        (
            "start point with too few indices",
            "G = T.alloc_shared((1, 64, 64), \"float16\")\nT.copy(A[0, 0], G)"
        ),
        ("strided slice", "T.copy(A[0:64:2, :], S[0:32, :])"),
        ("negative slice bound", "T.copy(A[-32:64, :], S)"),
        ("slice past the end", "T.copy(A[32:96, :], S)"),
        (
            "slice of shared past the end",
            "T.copy(A[bx * 16, 0], S[32:96, :])"
        ),
        ("index past the end", "T.copy(A[64, 0], S)"),
        ("overlapping regions", "T.copy(S[0:32, :], S[16:48, :])"),
        ("a barrier is no data", "T.copy(bar, I[0:2])"),
        ("a reducer is no data", "T.copy(acc, row)"),
        (
            "a fragment and a thread's own array",
            "T.copy(F[0, 0:8], L)"
        ),
        (
            "unknown eviction policy",
            "T.copy(A, S, eviction_policy=\"evict_never\")"
        ),
        ("a number is no tile", "T.copy(3, S)"),
        ("async copy from shared to global", "T.async_copy(S, A)"),
        ("async copy that converts", "T.async_copy(B, S)"),
        ("bulk load without a barrier", "T.tma_copy(A, S)"),
        (
            "bulk store with a barrier",
            "T.tma_copy(S, A, barrier=bar[0])"
        ),
        (
            "bulk load whose barrier is data",
            "T.tma_copy(A, S, barrier=V[0])"
        ),
        (
            "descriptor with too few numbers",
            "T.create_tma_descriptor(6, 2, A.data, 64, 64)"
        ),
        (
            "descriptor of six dimensions",
            "T.create_tma_descriptor(6, 6, A.data)"
        ),
        (
            "descriptor of another type",
            "T.create_tma_descriptor(7, 2, A.data, 64, 64, 2, 128, 64, 32, 1, 1, 0, 3, 2, 0)"
        ),
        (
            "descriptor of an unknown type",
            "T.create_tma_descriptor(13, 2, A.data, 64, 64, 2, 128, 64, 32, 1, 1, 0, 3, 2, 0)"
        ),
        (
            "descriptor from the middle of a tensor",
            "T.create_tma_descriptor(6, 2, T.address_of(A[1, 0]), 64, 64, 2, 128, 64, 32, 1, 1, 0, 3, 2, 0)"
        ),
        (
            "descriptor of other extents",
            "T.create_tma_descriptor(6, 2, A.data, 32, 64, 2, 128, 64, 32, 1, 1, 0, 3, 2, 0)"
        ),
        (
            "descriptor of another stride",
            "T.create_tma_descriptor(6, 2, A.data, 64, 64, 2, 64, 64, 32, 1, 1, 0, 3, 2, 0)"
        ),
        (
            "descriptor of a long box",
            "T.create_tma_descriptor(6, 2, A.data, 64, 64, 2, 128, 64, 257, 1, 1, 0, 3, 2, 0)"
        ),
        (
            "descriptor of a box with short rows",
            "T.create_tma_descriptor(6, 2, A.data, 64, 64, 2, 128, 4, 32, 1, 1, 0, 3, 2, 0)"
        ),
        (
            "descriptor that leaves elements out",
            "T.create_tma_descriptor(6, 2, A.data, 64, 64, 2, 128, 64, 32, 2, 1, 0, 3, 2, 0)"
        ),
        (
            "descriptor with a fill of nan",
            "T.create_tma_descriptor(6, 2, A.data, 64, 64, 2, 128, 64, 32, 1, 1, 0, 3, 2, 1)"
        ),
        (
            "load without a descriptor",
            "T.tma_load(A, bar[0], S, 0, 0)"
        ),
        (
            "load with a coordinate too few",
            "T.tma_load(T.create_tma_descriptor(6, 2, A.data, 64, 64, 2, 128, 64, 32, 1, 1, 0, 3, 2, 0), bar[0], S, 0)"
        ),
        (
            "load to no address",
            "T.tma_load(T.create_tma_descriptor(6, 2, A.data, 64, 64, 2, 128, 64, 32, 1, 1, 0, 3, 2, 0), bar[0], 3, 0, 0)"
        ),
        (
            "load to a fragment",
            "T.tma_load(T.create_tma_descriptor(6, 2, A.data, 64, 64, 2, 128, 64, 32, 1, 1, 0, 3, 2, 0), bar[0], F, 0, 0)"
        ),
        (
            "store that reduces",
            "T.tma_store(T.create_tma_descriptor(6, 2, A.data, 64, 64, 2, 128, 64, 32, 1, 1, 0, 3, 2, 0), S, 0, 0, 1)"
        ),
        (
            "load past the end of a tile",
            "T.tma_load(T.create_tma_descriptor(6, 2, A.data, 64, 64, 2, 128, 64, 32, 1, 1, 0, 3, 2, 0), bar[0], T.access_ptr(S[48, 0], \"w\"), 0, 0)"
        ),
        (
            "load from behind the tensor",
            "T.tma_load(T.create_tma_descriptor(6, 2, A.data, 64, 64, 2, 128, 64, 32, 1, 1, 0, 3, 2, 0), bar[0], S, 0, 64)"
        ),
        (
            "a tile that fits nowhere, from a place that nobody knows",
            "Q = T.alloc_shared((32, 32), \"float16\")\nT.copy(S, Q[I[0], 0])"
        ),
        ("transpose into the wrong shape", "T.transpose(R, S)"),
    ]));
}

#[test]
fn products() {
    check!(family(&[
        (
            "K differs",
            "Q = T.alloc_shared((48, 64), \"float16\")\nT.gemm(S, Q, F)"
        ),
        (
            "M differs",
            "G = T.alloc_fragment((32, 64), \"float32\")\nT.gemm(S, S, G)"
        ),
        (
            "N differs",
            "G = T.alloc_fragment((64, 32), \"float32\")\nT.gemm(S, S, G)"
        ),
        (
            "a missing transpose",
            "Q = T.alloc_shared((32, 64), \"float16\")\nG = T.alloc_fragment((64, 32), \"float32\")\nT.gemm(S, Q, G)"
        ),
        ("a vector operand", "T.gemm(row, S, F)"),
        (
            "metadata of too few groups",
            "Q = T.alloc_shared((64, 32), \"float16\")\nE = T.alloc_shared((64, 2), \"int16\")\nT.gemm_sp(Q, E, S, F)"
        ),
        (
            "metadata the other way round",
            "Q = T.alloc_shared((64, 32), \"float16\")\nE = T.alloc_shared((64, 4), \"int16\")\nT.gemm_sp(Q, E, S, F, transpose_E=True)"
        ),
        (
            "metadata of a type that has none",
            "Q = T.alloc_shared((64, 32), \"float16\")\nE = T.alloc_shared((64, 4), \"float16\")\nT.gemm_sp(Q, E, S, F)"
        ),
        (
            "metadata in global memory",
            "Q = T.alloc_shared((64, 32), \"float16\")\nT.gemm_sp(Q, A, S, F)"
        ),
        (
            "a sparse factor with all of its elements",
            "E = T.alloc_shared((64, 4), \"int16\")\nT.gemm_sp(S, E, S, F)"
        ),
        (
            "a sparse factor of four bits",
            "Q = T.alloc_shared((64, 32), \"int4\")\nR = T.alloc_shared((64, 64), \"int4\")\nE = T.alloc_shared((64, 4), \"int16\")\nG = T.alloc_fragment((64, 64), \"int32\")\nT.gemm_sp(Q, E, R, G)"
        ),
        (
            "scales of too few runs",
            "P = T.alloc_shared((64, 64), \"float8_e4m3fn\")\nSA = T.alloc_shared((64, 2), \"float8_e8m0fnu\")\nT.gemm_blockscaled(P, P, F, SA, SA, sf_b_granularity_k=16)"
        ),
        (
            "scales of a type that has none",
            "P = T.alloc_shared((64, 64), \"float8_e4m3fn\")\nSA = T.alloc_shared((64, 2), \"float8_e8m0fnu\")\nT.gemm_blockscaled(P, P, F, SA, S)"
        ),
        (
            "scales in global memory",
            "P = T.alloc_shared((64, 64), \"float8_e4m3fn\")\nSA = T.alloc_shared((64, 2), \"float8_e8m0fnu\")\nT.gemm_blockscaled(P, P, F, SA, A)"
        ),
        (
            "scales of factors that have none",
            "P = T.alloc_shared((64, 64), \"float8_e4m3fn\")\nSA = T.alloc_shared((64, 2), \"float8_e8m0fnu\")\nT.gemm_blockscaled(P, S, F, SA, SA)"
        ),
        (
            "scaled products summed in halves",
            "P = T.alloc_shared((64, 64), \"float8_e4m3fn\")\nSA = T.alloc_shared((64, 2), \"float8_e8m0fnu\")\nG = T.alloc_fragment((64, 64), \"float16\")\nT.gemm_blockscaled(P, P, G, SA, SA)"
        ),
        (
            "a scale for no element",
            "P = T.alloc_shared((64, 64), \"float8_e4m3fn\")\nSA = T.alloc_shared((64, 2), \"float8_e8m0fnu\")\nT.gemm_blockscaled(P, P, F, SA, SA, sf_a_granularity_k=0)"
        ),
        (
            "scaled products by TileLang's name",
            "P = T.alloc_shared((64, 64), \"float8_e4m3fn\")\nSA = T.alloc_shared((64, 2), \"float8_e8m0fnu\")\nT.mma_gemm_blockscaled(P, P, F, SA, SA)"
        ),
        (
            "a batch of matrices",
            "P = T.alloc_shared((2, 64, 64), \"float16\")\nT.gemm(P, S, F)"
        ),
        ("a single element", "T.gemm(S[0, 0], S, F)"),
        ("a global operand", "T.gemm(A, S, F)"),
        (
            "a shared accumulator",
            "G = T.alloc_shared((64, 64), \"float32\")\nT.gemm(S, S, G)"
        ),
        (
            "mixed operand types",
            "Q = T.alloc_shared((64, 64), \"bfloat16\")\nT.gemm(S, Q, F)"
        ),
        (
            "no such product",
            "Q = T.alloc_shared((64, 64), \"int16\")\nT.gemm(Q, Q, F)"
        ),
        (
            "an accumulator of the wrong type",
            "G = T.alloc_fragment((64, 64), \"int32\")\nT.gemm(S, S, G)"
        ),
        ("a part of a fragment", "T.gemm(S[0:32, :], S, F[0:32, :])"),
        ("the accumulator as operand", "T.gemm(F, S, F)"),
        ("k_pack", "T.gemm(S, S, F, k_pack=3)"),
        ("policy by name", "T.gemm(S, S, F, policy=\"FullRow\")"),
        (
            "a policy that is none",
            "T.gemm(S, S, F, policy=T.GemmWarpPolicy.FullRows)"
        ),
        ("mbar without tensor memory", "T.gemm(S, S, F, mbar=bar[0])"),
        (
            "tcgen05 into a fragment",
            "T.tcgen05_gemm(S, S, F, mbar=bar[0])"
        ),
    ]));
}

#[test]
fn reductions_and_scans() {
    check!(family(&[
        ("no such dimension", "T.reduce_sum(F, row, dim=2)"),
        ("no such negative dimension", "T.reduce_sum(F, row, dim=-3)"),
        (
            "output of the wrong shape",
            "half = T.alloc_fragment((32,), \"float32\")\nT.reduce_max(F, half, dim=1)"
        ),
        ("from global memory", "T.reduce_sum(B, row)"),
        ("from shared to a thread's own", "T.reduce_sum(S, L)"),
        ("bits of floats", "T.reduce_bitand(F, row)"),
        ("no such kind", "T.reduce(F, row, \"mean\", 1, True)"),
        ("in place", "T.reduce_sum(F, F)"),
        ("one element", "T.reduce_sum(F, row[0])"),
        ("batch", "T.reduce_sum(F, row, batch=0)"),
        (
            "scan of three dimensions",
            "C = T.alloc_shared((2, 4, 8), \"float32\")\nT.cumsum(C)"
        ),
        ("scan along nothing", "T.cumsum(row, dim=1)"),
        (
            "scan into another shape",
            "half = T.alloc_fragment((32,), \"float32\")\nT.cumsum(row, half)"
        ),
        ("scan of global memory", "T.cumsum(V)"),
    ]));
}

#[test]
fn reducers() {
    check!(family(&[
        (
            "contribution before init",
            "for i in T.Parallel(64):\n    acc[i] += V[i]"
        ),
        (
            "contribution after finalize",
            "T.clear(acc)\nT.finalize_reducer(acc)\nfor i in T.Parallel(64):\n    acc[i] += V[i]"
        ),
        (
            "contribution outside Parallel",
            "T.reducer_init(acc)\nT.reducer_update(acc[0], 1.0)\nT.finalize_reducer(acc, row)"
        ),
        (
            "missing finalize",
            "T.reducer_init(acc)\nfor i in T.Parallel(64):\n    T.reducer_update(acc[i], V[i])"
        ),
        (
            "double init",
            "T.reducer_init(acc)\nT.reducer_init(acc)\nT.finalize_reducer(acc, row)"
        ),
        (
            "double finalize",
            "T.reducer_init(acc)\nT.finalize_reducer(acc, row)\nT.finalize_reducer(acc, row)"
        ),
        ("finalize without init", "T.finalize_reducer(acc, row)"),
        (
            "finalize in a loop, init outside",
            "T.reducer_init(acc)\nfor k in T.serial(4):\n    T.finalize_reducer(acc, row)"
        ),
        (
            "read before finalize",
            "T.clear(acc)\nV[0] = acc[0]\nT.finalize_reducer(acc)"
        ),
        (
            "a store that is no contribution",
            "T.clear(acc)\nfor i in T.Parallel(64):\n    acc[i] = V[i]\nT.finalize_reducer(acc)"
        ),
        (
            "the wrong operation",
            "T.clear(acc)\nfor i in T.Parallel(64):\n    acc[i] = T.max(acc[i], V[i])\nT.finalize_reducer(acc)"
        ),
        (
            "a sum that starts at one",
            "T.fill(acc, 1.0)\nT.finalize_reducer(acc)"
        ),
        (
            "finalize into another shape",
            "half = T.alloc_fragment((32,), \"float32\")\nT.reducer_init(acc)\nT.finalize_reducer(acc, half)"
        ),
        ("no reducer", "T.reducer_init(row)"),
        (
            "no such operation",
            "r = T.alloc_reducer((4,), \"float32\", \"mean\")"
        ),
    ]));
}

#[test]
fn loops() {
    check!(family(&[
        (
            "nested Parallel",
            "for i in T.Parallel(64):\n    V[i] = 0.0\n    for j in T.Parallel(64):\n        B[i, j] = 0.0"
        ),
        (
            "tile op in Parallel",
            "for i in T.Parallel(64):\n    T.copy(A[i, 0:64], S[i, 0:64])"
        ),
        (
            "local indexed by a parallel index",
            "for i in T.Parallel(8):\n    L[i] = 0.0"
        ),
        ("break in Parallel", "for i in T.Parallel(64):\n    break"),
        (
            "pipelined in Parallel",
            "for i in T.Parallel(64):\n    for k in T.Pipelined(4, num_stages=2):\n        V[i] = 0.0"
        ),
        ("zero step", "for i in T.serial(0, 8, 0):\n    V[i] = 0.0"),
        ("float bound", "for i in T.serial(8.0):\n    V[i] = 0.0"),
        (
            "Parallel over nothing",
            "for i in T.Parallel(0):\n    V[i] = 0.0"
        ),
        (
            "Parallel without extents",
            "for i in T.Parallel():\n    pass"
        ),
        ("loop over a number", "for i in 8:\n    V[i] = 0.0"),
        (
            "negative stages",
            "for k in T.Pipelined(4, num_stages=-1):\n    pass"
        ),
        (
            "stages that are no int",
            "for k in T.Pipelined(4, num_stages=2.5):\n    pass"
        ),
        (
            "a schedule without stages",
            "for k in T.Pipelined(4, schedule=\"plain\"):\n    pass"
        ),
        (
            "order and stage of other lengths",
            "for k in T.Pipelined(4, order=[0, 1], stage=[0]):\n    pass"
        ),
        (
            "order that leaves a place out",
            "for k in T.Pipelined(4, order=[0, 2], stage=[0, 1]):\n    V[k] = 0.0\n    V[k] = 1.0"
        ),
        (
            "order and stage of another length than the body",
            "for k in T.Pipelined(4, order=[0], stage=[0]):\n    z = k * 2\n    V[z] = 0.0\n    V[k] = 1.0"
        ),
        (
            "order and stage of another length than group",
            "for k in T.Pipelined(4, order=[0], stage=[0], group=[[0], [1]]):\n    V[k] = 0.0\n    V[k] = 1.0"
        ),
        (
            "a group of a statement that is not there",
            "for k in T.Pipelined(4, order=[0], stage=[0], group=[[0, 1]]):\n    V[k] = 0.0"
        ),
        (
            "a statement in two groups",
            "for k in T.Pipelined(4, order=[0, 1], stage=[0, 1], group=[[0], [0]]):\n    V[k] = 0.0"
        ),
        (
            "a statement in no group",
            "for k in T.Pipelined(4, order=[0], stage=[0], group=[[1]]):\n    V[k] = 0.0\n    V[k] = 1.0"
        ),
        (
            "order that is no list",
            "for k in T.Pipelined(4, order=3, stage=3):\n    pass"
        ),
        (
            "explicit and factor",
            "for k in T.unroll(4, explicit=True, unroll_factor=2):\n    pass"
        ),
        ("constant-true while", "while True:\n    x = x + 1"),
        (
            "persistent over an int",
            "for i in T.Persistent(4, 2, bx):\n    pass"
        ),
        (
            "thread binding of another extent",
            "for t in T.thread_binding(0, 64, thread=\"threadIdx.x\"):\n    V[t] = 0.0"
        ),
        (
            "thread binding of no axis",
            "for t in T.thread_binding(0, 128, thread=\"threadIdx.w\"):\n    pass"
        ),
        ("break outside a loop", "T.loop_break()"),
    ]));
}

#[test]
fn threads_and_points() {
    check!(family(&[
        (
            "tile op for some threads",
            "tx = T.get_thread_binding()\nif tx < 32:\n    T.clear(S)"
        ),
        (
            "barrier for some threads",
            "lane = T.get_thread_binding() % 32\nif lane == 0:\n    T.sync_threads()"
        ),
        (
            "tile op in a loop of each thread's own length",
            "tx = T.get_thread_binding()\nfor k in T.serial(tx):\n    T.copy(A, S)"
        ),
        (
            "tile op under a variable that differs",
            "x = T.get_thread_binding()\nwhile x > 0:\n    T.copy(A, S)\n    x = x - 1"
        ),
        (
            "tile op in a loop that some threads leave",
            "tx = T.get_thread_binding()\nfor k in T.serial(4):\n    if tx > k:\n        break\n    T.copy(A, S)",
        ),
        (
            "parallel loop for some threads",
            "if T.atomic_add(I[0], 1, return_prev=True) == 3:\n    for i in T.Parallel(64):\n        V[i] = 0.0"
        ),
        (
            "tile op where each thread looks for itself",
            "while T.atomic_load(I[0]) == 0:\n    T.copy(A, S)"
        ),
        (
            "tile op under what foreign code says",
            "if T.call_extern(\"int32\", \"f\") > 0:\n    T.copy(A, S)"
        ),
        (
            "tile op under a thread's own copy",
            "tx = T.get_thread_binding()\nL = T.alloc_local((4,), \"float32\")\nT.copy(V[tx % 8 * 4 : tx % 8 * 4 + 4], L)\nif L[0] > 0.0:\n    T.copy(A, S)"
        ),
        (
            "tile op under a variable of points",
            "x = T.alloc_var(\"int32\", 0)\nfor i in T.Parallel(64):\n    x = 1\nif x > 0:\n    T.copy(A, S)"
        ),
        (
            "tile op in a loop that some leave behind a continue",
            "tx = T.get_thread_binding()\nfor k in T.serial(4):\n    T.copy(A, S)\n    if tx > k:\n        continue\n    if I[0] > k:\n        break",
        ),
        (
            "tile op in a loop that a warp group leaves",
            "for k in T.serial(4):\n    T.copy(A, S)\n    with T.ws(0):\n        T.loop_break()",
        ),
        (
            "tile op under a variable of a warp group",
            "x = T.alloc_var(\"int32\", 0)\nwith T.ws(0):\n    x = 1\nif x > 0:\n    T.copy(A, S)",
        ),
        (
            "sum over parallel points",
            "for i, j in T.Parallel(64, 64):\n    row[i] += F[i, j]"
        ),
        (
            "sum through a name",
            "for i in T.Parallel(64):\n    old = V[0]\n    V[0] = old + row[i]"
        ),
        (
            "fragment in a loop of run-time extent",
            "for i in T.Parallel(I[0]):\n    row[i] = 0.0"
        ),
    ]));
}

#[test]
fn names_and_calls() {
    check!(family(&[
        ("unknown name with a near one", "T.coppy(A, S)"),
        ("unknown name", "T.frobnicate(A)"),
        ("known but not supported", "T.ptx_mma(A)"),
        ("known but not supported, a family", "T.clc_try_cancel()"),
        ("too few arguments", "T.copy(A)"),
        ("too many arguments", "T.clear(S, None, 3)"),
        ("unknown keyword", "T.copy(A, S, disable_tmaa=True)"),
        ("argument given twice", "T.copy(A, S, src=A)"),
        ("wrong type", "T.gemm(S, S, F, transpose_A=\"yes\")"),
        (
            "name bound in a run-time branch",
            "if bx > 0:\n    y = V[bx]\nV[0] = y"
        ),
        ("aug-assign on a whole buffer", "S += 1"),
        ("a buffer as a condition", "if S:\n    V[0] = 0.0"),
        ("a float as an index", "V[1.5] = 0.0"),
        ("a run-time float as an index", "V[V[0]] = 0.0"),
        ("too few indices", "V[0] = B[0]"),
        ("index out of bounds", "V[64] = 0.0"),
        ("reading a barrier", "V[0] = bar[0]"),
        ("unknown dtype", "Q = T.alloc_shared((4,), \"float17\")"),
        ("calling a buffer", "V(0)"),
    ]));
}

#[test]
fn scalars() {
    check!(family(&[
        ("int divided by int", "V[0] = I[0] / I[1]"),
        ("shift range", "I[0] = I[1] << 32"),
        ("shift of a float", "I[0] = T.shift_left(V[0], 1)"),
        (
            "reinterpret of another width",
            "I[0] = T.reinterpret(A[0, 0], \"int32\")"
        ),
        ("cast to nothing", "V[0] = T.cast(I[0], 3)"),
        (
            "cast with a rounding mode",
            "V[0] = T.cast(I[0], \"float32\", round=\"rz\")"
        ),
        ("infinity of an int", "I[0] = T.infinity(\"int32\")"),
        ("infinity of fp8", "V[0] = T.infinity(\"float8_e4m3fn\")"),
        ("exp of an int", "V[0] = T.exp(I[0])"),
        ("popcount of a float", "I[0] = T.popcount(V[0])"),
        ("floor division of floats", "V[0] = T.floordiv(V[0], V[1])"),
        (
            "ceildiv by zero",
            "for k in T.serial(T.ceildiv(I[0], 0)):\n    pass"
        ),
        ("division by constant zero", "I[0] = I[1] // 0"),
        ("bitwise on floats", "V[0] = V[1] & V[2]"),
        (
            "if_then_else on an int",
            "V[0] = T.if_then_else(I[0], 1.0, 2.0)"
        ),
        (
            "Select of two types",
            "V[0] = T.Select(I[0] > 0, V[0], I[0])"
        ),
        ("power operator", "V[0] = V[1] ** 2"),
        (
            "`and` of ints",
            "V[0] = T.if_then_else(I[0] and I[1], 1.0, 2.0)"
        ),
        (
            "rounding mode of ieee",
            "V[0] = T.ieee_add(V[0], V[1], \"rz\")"
        ),
    ]));
}

#[test]
fn views_and_memory() {
    check!(family(&[
        ("reshape to another size", "Q = T.reshape(S, (64, 32))"),
        (
            "view of another bit count",
            "Q = T.view(S, (64, 64), dtype=\"float32\")"
        ),
        ("view of a barrier", "Q = T.view(bar, (2,))"),
        (
            "fragment seen at another width",
            "Q = T.view(F, (64, 128), dtype=\"float16\")"
        ),
        (
            "address in a fragment",
            "T.call_extern(\"handle\", \"f\", T.address_of(F[0, 0]))"
        ),
        (
            "offset into two dimensions",
            "T.call_extern(\"handle\", \"f\", T.access_ptr(A, \"r\", offset=4))"
        ),
        ("fill past the end", "T.fill(S[32:96, :], 0)"),
        ("fill of a barrier", "T.clear(bar)"),
        (
            "a run-time extent on chip",
            "Q = T.alloc_shared((bx,), \"float32\")"
        ),
        (
            "a negative extent",
            "Q = T.alloc_shared((-4,), \"float32\")"
        ),
        (
            "too large",
            "Q = T.alloc_shared((65536, 65536), \"float32\")"
        ),
        (
            "allocation in Parallel",
            "for i in T.Parallel(64):\n    Q = T.alloc_shared((64,), \"float32\")"
        ),
        (
            "scope of another kind",
            "Q = T.alloc_shared((64,), \"float32\", scope=\"global\")"
        ),
        ("two initial values", "y = T.alloc_var(\"int32\", 1, 2)"),
        (
            "tensor memory of the wrong shape",
            "Q = T.alloc_tmem((128, 33), \"float32\")"
        ),
        ("fragment stored outside Parallel", "row[3] = 0.0"),
    ]));
}

#[test]
fn vectors_and_words() {
    check!(family(&[
        ("too few values of a vector", "v = T.float32x4(1.0, 2.0)"),
        ("a number for a region", "V[0:4] = 1.0"),
        (
            "a vector of another length",
            "V[0:4] = T.float32x2(1.0, 2.0)"
        ),
        ("a long region", "V[0:64] = B[0, 0:64]"),
        ("a wide load of shared memory", "v = T.ldg128(S[0, 0])"),
        ("a store of fewer bits", "T.stg128(V[0], T.ldg32(V[0]))"),
        (
            "a thread's copy the other way",
            "T.ptx_cp_async(T.access_ptr(A[0, 0], \"w\"), T.access_ptr(S[0, 0], \"r\"), 8)"
        ),
        (
            "a thread's copy of six bytes",
            "T.ptx_cp_async(T.access_ptr(S[0, 0], \"w\"), T.access_ptr(A[0, 0], \"r\"), 3)"
        ),
        (
            "a thread's copy that converts",
            "T.ptx_cp_async(T.access_ptr(S[0, 0], \"w\"), T.access_ptr(B[0, 0], \"r\"), 4)"
        ),
        (
            "a tensor over a part of shared memory",
            "W = T.Tensor((8,), \"float16\", S.data)"
        ),
        (
            "random rounding without random bits",
            "A[0, 0] = T.cast(V[0], \"float16\", round=\"rs\")"
        ),
        (
            "random rounding to a type that has none",
            "I[0] = T.cast(V[0], \"int32\", round=\"rs\", rbits=I[0])"
        ),
        (
            "random bits that are a float",
            "A[0, 0] = T.cast(V[0], \"float16\", round=\"rs\", rbits=V[0])"
        ),
        ("random numbers of nothing", "x = T.rng_rand()"),
        (
            "random numbers of a block that has ended",
            "if bx == 0:\n    T.rng_init(1)\nI[0] = T.rng_rand()"
        ),
        (
            "random numbers of points",
            "T.rng_init(1)\nfor i in T.Parallel(64):\n    V[i] = T.rng_rand_float()"
        ),
        (
            "another generator",
            "T.rng_init(1, generator=\"curandStateXORWOW_t\")"
        ),
        (
            "another distribution",
            "T.rng_init(1)\nV[0] = T.rng_rand_float(dist=\"normal\")"
        ),
        (
            "a scheduler without state",
            "s = T.PersistentTileScheduler(\"s\", 2, 2, 1, stateful=False)\ns.init(bx)"
        ),
        (
            "a scheduler's number left out",
            "s = T.PersistentTileScheduler(\"s\", 2, 2, 1)\ns.init()"
        ),
        (
            "half a warp group",
            "tx = T.get_thread_binding()\nif tx < 64:\n    T.clear(F)"
        ),
    ]));
}

#[test]
fn atomics() {
    check!(family(&[
        ("on a fragment", "T.atomic_add(row[0], 1.0)"),
        (
            "on a type without atomics",
            "Q = T.alloc_shared((4,), \"int8\")\nT.atomic_add(Q[0], 1)"
        ),
        ("or of floats", "T.atomic_or(V[0], 1)"),
        (
            "unknown memory order",
            "T.atomic_add(V[0], 1.0, memory_order=\"strict\")"
        ),
        (
            "a load that releases",
            "I[0] = T.atomic_load(I[1], memory_order=\"release\")"
        ),
        (
            "old value of a tile",
            "old = T.atomic_add(V[0:32], 1.0, return_prev=True)"
        ),
        ("tiles of other shapes", "T.atomic_add(V[0:32], row)"),
        ("vector past the end", "T.atomic_addx4(V[62], L[0])"),
        ("vector that is not aligned", "T.atomic_addx4(V[2], L[0])"),
        ("vector of ints", "T.atomic_addx2(I[0], L[0])"),
    ]));
}

#[test]
fn synchronisation() {
    // Threads 128 to 254 are one short of a group.
    let part = TEMPLATE.replace("threads=128", "threads=255");
    let part = case(
        "a part of a warp group",
        &(part + "        with T.ws(1):\n            T.clear(S)\n"),
        &[],
    );
    let all = family(&[
        ("waiting on data", "T.mbarrier_wait_parity(V[0], 0)"),
        ("waiting on a number", "T.mbarrier_wait_parity(3, 0)"),
        (
            "waiting on all barriers",
            "T.mbarrier_wait_parity([bar[0], bar[1]], 0)",
        ),
        ("barrier index out of range", "T.mbarrier_arrive(bar[2])"),
        ("a float parity", "T.mbarrier_wait_parity(bar[0], 0.5)"),
        ("barrier without arrivals", "b = T.alloc_barrier(0)"),
        ("barrier of no counts", "b = T.alloc_barrier([])"),
        (
            "sync in Parallel",
            "for i in T.Parallel(64):\n    T.sync_threads()",
        ),
        ("named barrier out of range", "T.sync_threads(16, 64)"),
        ("named barrier of part of a warp", "T.sync_threads(1, 48)"),
        ("no such warp group", "with T.ws(1):\n    T.clear(S)"),
        (
            "warp group inside a warp group",
            "with T.ws(0):\n    with T.ws(0):\n        T.clear(S)",
        ),
        ("negative group count", "T.ptx_wait_group(-1)"),
        ("partial shuffle mask", "y = T.shfl_xor(x, 1, 32, 0xFF)"),
        ("shuffle width", "y = T.shfl_xor(x, 1, 24)"),
        (
            "allreduce without a reducer",
            "T.tvm_thread_allreduce(T.uint32(1), V[0], True, L[0], T.get_thread_binding(0), dtype=\"handle\")",
        ),
        (
            "allreduce over no thread index",
            "with T.attr(T.comm_reducer(lambda a, b: a + b, [T.float32(0)]), \"reduce_scope\", 0):\n    T.tvm_thread_allreduce(T.uint32(1), V[0], True, L[0], bx, dtype=\"handle\")",
        ),
        (
            "allreduce into global memory",
            "with T.attr(T.comm_reducer(lambda a, b: a + b, [T.float32(0)]), \"reduce_scope\", 0):\n    T.tvm_thread_allreduce(T.uint32(1), V[0], True, V[1], T.get_thread_binding(0), dtype=\"handle\")",
        ),
        ("no such thread axis", "t = T.get_thread_binding(3)"),
    ]);
    check!(all + &part);
}

#[test]
fn annotations() {
    check!(family(&[
        (
            "unknown swizzle order",
            "T.use_swizzle(8, order=\"diagonal\")"
        ),
        ("swizzle of no panel", "T.use_swizzle(0)"),
        (
            "fragment with a layout",
            "T.annotate_layout({F: T.Layout((64, 64), lambda i, j: (j, i))})"
        ),
        (
            "layout of another shape",
            "T.annotate_layout({S: T.Layout((64, 32), lambda i, j: (j, i))})"
        ),
        ("layout that is none", "T.annotate_layout({S: 3})"),
        (
            "layout of a thread's own array",
            "T.annotate_layout({L: T.Layout((8,), lambda i: i)})"
        ),
        (
            "layout function of floats",
            "T.annotate_layout({S: lambda i, j: i * 0.5})"
        ),
        ("no dict", "T.annotate_layout(S)"),
        (
            "key that is no buffer",
            "T.annotate_layout({\"S\": T.Layout((64, 64), lambda i, j: (j, i))})"
        ),
        (
            "fragment without a thread",
            "T.annotate_layout({F: T.Fragment((64, 64), forward_fn=lambda i, j: i)})"
        ),
        (
            "safe value of shared memory",
            "T.annotate_safe_value({S: 1.0})"
        ),
        (
            "two safe values",
            "T.annotate_safe_value({A: 1.0})\nT.annotate_safe_value({A: 2.0})"
        ),
        ("hit ratio", "T.annotate_l2_hit_ratio({A: 1.5})"),
        ("false assumption", "T.assume(64 < 8)"),
    ]));
}

/// What one who knows NumPy, PyTorch or Python writes first.
#[test]
fn habits_from_elsewhere() {
    check!(family(&[
        (
            "a function of numpy",
            "import numpy as np\nfor i in T.Parallel(64):\n    V[i] = np.exp(V[i])"
        ),
        (
            "a function of torch",
            "import torch\nfor i in T.Parallel(64):\n    V[i] = torch.nn.functional.relu(V[i])"
        ),
        ("a product of torch", "import torch\nF = torch.matmul(A, A)"),
        (
            "a function that the language has not",
            "import os\nfor i in T.Parallel(64):\n    I[i] = os.getpid()"
        ),
        (
            "an element as a number",
            "for i in T.Parallel(64):\n    V[i] = V[i].item()"
        ),
        ("a reduction as a method", "V[0] = V.sum()"),
        (
            "a conversion as a method",
            "for i in T.Parallel(64):\n    V[i] = V[i].to(T.float16)"
        ),
        (
            "leaving the kernel early",
            "if bx > 2:\n    return\nT.clear(F)"
        ),
        ("a result of a kernel", "T.clear(F)\nreturn F"),
    ]));
}
