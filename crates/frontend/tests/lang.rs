//! The families of the language: what a kernel's text becomes in tile IR.

use tilewright_frontend::{SettingValue, Staged, lang, stage};
use tilewright_ir::{FileId, Severity, SourceMap, text};

/// The buffers and indices that the bodies of the tests use.
const TEMPLATE: &str = r#"import tilelang
import tilelang.language as T

n = T.dynamic("n")

@T.prim_func
def kernel(
    A: T.Tensor((n, 64), "float16"),
    B: T.Tensor((64, 64), "float32"),
    V: T.Tensor((64,), "float32"),
    I: T.Tensor((64,), "int32"),
    Q: T.Tensor((64,), "int8"),
):
    with T.Kernel(T.ceildiv(n, 64), 4, threads=256) as (bx, by):
        tx = T.get_thread_binding()
"#;

fn staged(source: &str) -> Result<Staged, String> {
    let mut sources = SourceMap::new();
    let file = sources.add("kernel.py", source);
    stage(&sources, file, None, &[]).map_err(|diagnostics| {
        let texts: Vec<String> = diagnostics
            .iter()
            .map(|d| d.render(&sources, false))
            .collect();
        texts.join("\n")
    })
}

/// The statements of the kernel that the body makes, without the template's own lines, and the
/// warnings after them.
fn body(statements: &str) -> String {
    let indented: String = statements
        .lines()
        .map(|line| format!("        {line}\n"))
        .collect();
    let staged = match staged(&format!("{TEMPLATE}{indented}")) {
        Ok(staged) => staged,
        Err(text) => panic!("{statements}\n{text}"),
    };
    let printed = text::print(&staged.func);
    let again = text::parse(&printed, FileId(0)).expect("the text form reads back");
    assert_eq!(text::print(&again), printed);
    let mut out = String::new();
    let mut inside = false;
    for line in printed.lines() {
        // The kernel is one level deep, its statements two.
        if line == "  }" {
            inside = false;
        }
        if inside {
            out += line.strip_prefix("    ").unwrap_or(line);
            out.push('\n');
        }
        if line.starts_with("  kernel ") {
            inside = true;
        }
    }
    for warning in &staged.warnings {
        assert_eq!(warning.severity, Severity::Warning);
        out += &format!("warning[{}]: {}\n", warning.code, warning.message);
    }
    out
}

/// Each case's statements and what they become.
fn family(cases: &[&str]) -> String {
    cases
        .iter()
        .map(|case| format!(">>> {}\n{}\n", case.replace('\n', "\n... "), body(case)))
        .collect()
}

macro_rules! check {
    ($cases:expr) => {
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!(family($cases));
        })
    };
}

#[test]
fn copies() {
    check!(&[
        // A start point takes the other side's extents.
        "S = T.alloc_shared((32, 64), \"float16\")\nT.copy(A[bx * 32, 0], S)",
        "S = T.alloc_shared((32, 64), \"float16\")\nT.copy(S, A[bx * 32, 0], coalesced_width=4)",
        // Unit dimensions drop out.
        "S = T.alloc_shared((2, 32, 64), \"float16\")\nT.copy(A[bx * 32:(bx + 1) * 32, :], S[by % 2, :, :])",
        "S = T.alloc_shared((2, 32, 64), \"float16\")\nT.copy(A[bx * 32, 0], S[by % 2, :, :])",
        // Equal extents need not be written alike.
        "S = T.alloc_shared((64, 64), \"float16\")\nk = T.alloc_var(\"int32\", 0)\nT.copy(A[T.max(bx, k) * 16:T.max(bx, k) * 16 + 16, :], S[16:32, :])\nT.copy(A[bx * 32 // 4 * 4:bx * 8 * 4 + 16, :], S[0:16, :])",
        // A dimension written as one index widens.
        "S = T.alloc_shared((32, 64), \"float16\")\nT.copy(A[bx * 32, 0:64], S)",
        // Hints.
        "S = T.alloc_shared((32, 64), \"float16\")\nT.copy(A[bx * 32, 0], S, disable_tma=True, eviction_policy=\"evict_first\", prefer_instruction=\"cp_async\")",
        // Two elements are an assignment by each thread.
        "T.copy(V[0], V[1])",
        // A thread's own memory is copied by each thread.
        "L = T.alloc_local((4,), \"float32\")\nT.copy(V[tx * 4:tx * 4 + 4], L)\nT.copy(L, V[tx * 4])",
        // A name for an element is still a start point.
        "S = T.alloc_shared((32, 64), \"float16\")\nhere = A[bx * 32, 0]\nT.copy(here, S)",
        "S = T.alloc_shared((32, 64), \"float16\")\nT.async_copy(A[bx * 32, 0], S)\nT.ptx_commit_group()\nT.ptx_wait_group(0)",
        "S = T.alloc_shared((32, 64), \"float16\")\nbar = T.alloc_barrier(128)\nT.tma_copy(A[bx * 32, 0], S, barrier=bar)\nT.tma_copy(S, A[bx * 32, 0])\nT.tma_store_arrive()\nT.tma_store_wait()",
        // Boxes of a descriptor, by one thread; the last number is an eviction policy.
        "S = T.alloc_shared((2, 32, 64), \"float16\")\nbar = T.alloc_barrier(1)\nd = T.create_tma_descriptor(6, 2, A.data, 64, n, 2, 128, 64, 32, 1, 1, 0, 3, 2, 0)\nif tx == 0:\n    T.mbarrier_arrive_expect_tx(bar, 4096)\n    T.tma_load(d, bar, T.access_ptr(S[1, 0, 0], \"w\"), 0, bx * 32, 1)\n    T.tma_store(d, S[by % 2, 0, 0], 0, bx * 32, 0, 0)",
        "S = T.alloc_shared((32, 64), \"float16\")\nD = T.alloc_shared((64, 32), \"float16\")\nT.transpose(S, D)",
        "T.fill(V, 1.5)\nT.fill(B[0:8, by * 16:by * 16 + 16], by)\nT.clear(V[3])",
        "L = T.alloc_local((2, 4), \"float16\")\nT.fill(L, V[tx])",
    ]);
}

#[test]
fn products() {
    check!(&[
        "S = T.alloc_shared((64, 32), \"float16\")\nR = T.alloc_shared((32, 96), \"float16\")\nF = T.alloc_fragment((64, 96), \"float32\")\nT.clear(F)\nT.gemm(S, R, F)",
        "S = T.alloc_shared((2, 32, 64), \"float16\")\nR = T.alloc_fragment((96, 32), \"float16\")\nF = T.alloc_fragment((64, 96), \"float32\")\nfor k in T.serial(4):\n    T.gemm(S[k % 2, :, :], R, F, True, True, T.GemmWarpPolicy.FullRow, k == 0, k_pack=2)",
        "S = T.alloc_shared((64, 32), \"int8\")\nF = T.alloc_fragment((64, 64), \"int32\")\nT.wgmma_gemm(S, S, F, transpose_B=True, clear_accum=True)\nT.wait_wgmma(0)",
        "S = T.alloc_shared((128, 64), \"float8_e4m3fn\")\nC = T.alloc_tmem((128, 128), \"float32\")\nbar = T.alloc_barrier(1)\nT.tcgen05_gemm(S, S, C, transpose_B=True, mbar=bar)",
    ]);
}

#[test]
fn reductions() {
    check!(&[
        "F = T.alloc_fragment((64, 48), \"float32\")\nr = T.alloc_fragment((64,), \"float32\")\nk = T.alloc_fragment((64, 1), \"float32\")\nT.reduce_sum(F, r)\nT.reduce_max(F, k, dim=-1, clear=False, nan_propagate=True)\nT.reduce_abssum(F, r, 1)",
        "F = T.alloc_fragment((64,), \"int32\")\nr = T.alloc_fragment((1,), \"int32\")\nT.reduce_bitand(F, r, dim=0)\nT.reduce(F, r, \"max\", 0, True)",
        // A thread's own memory is reduced by each thread.
        "L = T.alloc_local((2, 3), \"float32\")\nr = T.alloc_local((2,), \"float32\")\nT.reduce_absmax(L, r, dim=1)",
        "L = T.alloc_local((3,), \"float32\")\nr = T.alloc_local((1,), \"float32\")\nT.reduce_min(L, r, clear=False)",
        "L = T.alloc_local((3,), \"float32\")\nx = T.alloc_var(\"float32\")\nT.reduce_sum(L, x)\nV[0] = x",
        "S = T.alloc_shared((8, 64), \"float32\")\nF = T.alloc_fragment((8, 64), \"float32\")\nT.cumsum(S, dim=1)\nT.cumsum(F, F, 0, True)\nT.cummax(S, S)",
        "if T.any_of(I[0:2]):\n    V[0] = 1.0\nif T.all_of(I):\n    V[1] = 1.0",
    ]);
}

#[test]
fn reducers() {
    check!(&[
        "acc = T.alloc_reducer((64,), \"float32\", \"sum\")\nr = T.alloc_fragment((64,), \"float32\")\nT.reducer_init(acc, 10)\nfor i, j in T.Parallel(64, 64):\n    T.reducer_update(acc[i], B[i, j])\nT.finalize_reducer(acc, r)",
        // The older spelling is recorded as the newer.
        "acc = T.alloc_reducer((1,), \"float32\", \"sum\", replication=\"all\")\nT.clear(acc)\nfor i in T.Parallel(64):\n    acc[0] += V[i]\nT.finalize_reducer(acc)\nV[0] = acc[0]",
        "acc = T.alloc_reducer((64,), \"float16\", \"max\")\nT.fill(acc, -T.infinity(\"float16\"))\nfor i in T.Parallel(64):\n    acc[i] = T.max(V[i], acc[i])\nT.finalize_reducer(acc)\nfor k in T.serial(2):\n    T.fill(acc, 0)\n    for i in T.Parallel(64):\n        acc[i] = T.max(acc[i], V[i])\n    T.finalize_reducer(acc)",
        "acc = T.alloc_reducer((1,), \"int32\", \"bitor\")\nr = T.alloc_fragment((1,), \"int32\")\nT.reducer_init(acc)\nfor i in T.Parallel(64):\n    acc[0] |= I[i]\nif by > 0:\n    T.finalize_reducer(acc, r)",
    ]);
}

#[test]
fn atomics() {
    check!(&[
        "T.atomic_add(V[0], 1)",
        "old = T.atomic_max(I[by], bx, memory_order=\"acq_rel\", return_prev=True)\nI[0] = old + 1",
        "for i in T.Parallel(64):\n    T.atomic_min(V[i], B[0, i])",
        "F = T.alloc_fragment((32,), \"float32\")\nT.atomic_add(V[by * 16], F)\nT.atomic_add(B[0, 0:32], F)\nT.atomic_add(V[0:4], 2)",
        "T.atomic_add(V, B[by, 0])",
        "L = T.alloc_local((4,), \"float32\")\nT.atomic_addx4(V[tx * 4], L)\nT.atomic_addx2(V[0], L[2])",
        "T.atomic_store(I[0], 1, memory_order=\"release\")\nx = T.atomic_load(I[1])\nI[2] = x\nT.atomic_or(I[3], 4)",
        "S = T.alloc_shared((1,), \"int32\")\nT.atomic_add(S, 1)",
    ]);
}

#[test]
fn loops() {
    check!(&[
        "for i in T.serial(10, 0, -3):\n    V[i] = 0.0\nfor i in T.Serial(by):\n    V[i] = 0.0\nfor i in range(2, 4):\n    V[i] = 0.0",
        "for i in T.unroll(4):\n    V[i] = 0.0\nfor i in T.Unroll(0, 8, 2, unroll_factor=2):\n    V[i] = 0.0",
        "for i in T.vectorized(4):\n    V[i] = 0.0\nfor i, j in T.grid(2, 3):\n    B[i, j] = 0.0",
        "for i, j in T.Parallel(64, 64, coalesced_width=4):\n    B[i, j] = 0.0\nfor i in T.parallel(64):\n    V[i] = 0.0",
        "for k in T.Pipelined(4, num_stages=3):\n    V[k] = 0.0\nfor k in T.Pipelined(1, 9, num_stages=2, order=[-1, 0, 1], stage=[-1, 0, 1], sync=[[0, 1]], group=[[0], [1, 3], [2]]):\n    x = k * 2\n    V[k] = 0.0\n    V[x] = 1.0\n    y = T.alloc_var(\"int32\", k)\n    V[k] = 2.0\n    V[k] = V[y]",
        "for i, j in T.Persistent([T.ceildiv(n, 64), 8], 132, bx):\n    V[0] = 0.0\n    T.loop_break()",
        "for t in T.thread_binding(0, 256, thread=\"threadIdx.x\"):\n    I[t % 64] = t\nb = T.thread_binding(4, thread=\"blockIdx.y\")\nI[0] = b",
        "for i in T.serial(0, n, by):\n    V[0] = 0.0",
        // What the condition does is done before each iteration.
        "x = T.alloc_var(\"int32\", 0)\nwhile x < 3:\n    x += 1\nwhile T.atomic_load(I[0]) == 0:\n    x += 1",
    ]);
}

/// What looks like a mistake between threads or points and is none.
#[test]
fn threads_and_points() {
    check!(&[
        // Uniform variables and conditions.
        "S = T.alloc_shared((64,), \"float32\")\nx = T.alloc_var(\"int32\", 0)\nwhile x < by:\n    T.copy(V, S)\n    x += 1\nif I[by] > 0:\n    T.copy(S, V)",
        // Single threads' work under a thread's condition.
        "L = T.alloc_local((4,), \"float32\")\nif tx < 32:\n    T.clear(L)\n    V[tx] = L[0]\n    T.sync_threads(1, 32)",
        // Whole groups with suites of their own.
        "S = T.alloc_shared((64,), \"float32\")\nwith T.ws(0):\n    T.copy(V, S)",
        // One point is singled out, or the index tells points apart.
        "for i in T.Parallel(64):\n    if i == 0:\n        V[0] = V[0] + 1.0\n    V[i] = V[i] + 1.0\n    V[I[i]] = V[I[i]] + 1.0",
        // What is one value in each group decides for the group.
        "S = T.alloc_shared((64,), \"float32\")\nx = T.alloc_var(\"int32\", 0)\nwith T.ws(0):\n    x = 1\n    if x > 0:\n        T.copy(V, S)\nwith T.ws(1):\n    x = 2\n    if x > 1:\n        T.copy(V, S)",
        // All come to what stands before the `continue` of some.
        "S = T.alloc_shared((64,), \"float32\")\nfor k in T.serial(4):\n    T.copy(V, S)\n    if tx > k:\n        continue\n    V[tx % 64] = 0.0",
        // A vote of the block is the same for all.
        "S = T.alloc_shared((64,), \"float32\")\nif T.syncthreads_or(tx == 0) > 0:\n    T.copy(V, S)",
    ]);
}

#[test]
fn mathematics() {
    check!(&[
        "V[0] = T.exp(V[1]) + T.exp2(V[2]) + T.log2(V[3]) + T.rsqrt(V[4]) + T.sigmoid(V[5]) + T.tanh(V[6])",
        "V[0] = T.__exp(V[1]) * T.__log2(V[2]) + T.fast_rcp(V[3]) + T.ieee_fmaf(V[1], V[2], 1) + T.ieee_fsqrt(V[0])",
        "V[0] = T.floor(V[1]) + T.round(V[2]) + T.round(V[3], \"ties-away-from-zero\") + T.nearbyint(V[4])",
        "V[0] = T.fmod(V[1], 2) + T.atan2(V[1], V[2]) + T.ldexp(V[3], I[0]) + T.copysign(V[1], V[2])",
        "V[0] = T.pow(V[1], 3)\nV[1] = T.pow(V[2], 0.5)\nV[2] = T.pow(V[3], 0)",
        "I[0] = T.abs(I[1]) + T.popcount(I[2]) + T.clz(I[3]) + T.floor(I[4]) + T.__ffs(I[5])",
        "if T.isnan(V[0]) or T.isinf(V[1]):\n    V[0] = T.erf(V[2])",
        // Python numbers are computed at compile time.
        "I[0] = T.ceildiv(100, 32) + T.align_up(100, 32) + T.max(3, 4) + T.cdiv(-7, 2) + T.floordiv(-7, 2) + T.truncdiv(-7, 2)",
        "V[0] = T.exp2(3.0) + T.sqrt(2.25)\nV[1] = T.max(1.5, 2)",
        "V[0] = T.infinity(\"float32\")\nV[1] = -T.infinity(\"float32\")\nV[2] = T.max_value(\"bfloat16\")\nI[0] = T.min_value(T.int8)",
        "I[0] = T.truncmod(I[1], 4) + T.floormod(I[2], 4) + T.shift_left(I[3], 2) + T.bitwise_xor(I[4], 7) + T.bitwise_not(I[5])",
        "V[0] = T.clamp(V[1], -1.0, 1.0)\nV[1] = T.if_then_else(by < 2, V[2], 0)\nV[2] = T.Select(by < 2, V[3], 1)",
        "V[0] = T.cast(I[0], \"float32\") + T.Cast(\"float32\", I[1]) + T.reinterpret(I[2], \"float32\") + T.reinterpret(\"float32\", I[3])",
        "c = T.index_to_coordinates(by * 64 + tx, (4, 8, 8))\nI[0] = c[0] + c[1] + c[2]",
        "V[0] = T.add2(V[1], V[2]) + T.fma2(V[1], V[2], V[3]) + T.abs2(V[4]) + T.ieee_add(V[1], V[2], \"rn\")",
    ]);
}

#[test]
fn views_and_foreign_code() {
    check!(&[
        "S = T.alloc_shared((64, 32), \"float16\")\nR = T.reshape(S, (32, 64))\nU = T.view(S, dtype=\"uint32\")\nW = T.view(S, (2048,), \"int16\")\nT.clear(R)\nT.clear(U)\nT.clear(W)",
        "M = T.reshape(A, (n * 2, 32))\nT.clear(M[bx, 0:32])",
        "M = T.make_tensor(T.reinterpret(T.uint64(0), \"handle\"), (n, 8), \"float16\", strides=(16, 1))\nT.clear(M[bx, 0:8])",
        "T.import_source(\"__device__ float f(float*, float);\")\ny = T.call_extern(\"float32\", \"f\", V, V[0])\nV[1] = y\nT.call_extern(\"handle\", \"g\", T.access_ptr(V[4], \"rw\", 4), T.address_of(B[by, 0]))\nV[2] = T.call_pure_extern(\"float32\", \"h\", V[3])",
        "a = T.alloc_local((4,), \"int8\")\nc = T.alloc_local((1,), \"int32\")\nT.clear(c)\nT.copy(Q[0:4], a)\nT.dp4a(a, Q[4], c)",
        "V[0] = T.__ldg(V[1]) + T.__ldg(V, 2)",
    ]);
}

#[test]
fn memory() {
    check!(&[
        "S = T.alloc_shared((4,), \"float16\")\nF = T.alloc_fragment([4, 4], T.float32)\nL = T.alloc_local(8, \"int32\")\nx = T.alloc_var(\"float32\")\ny = T.alloc_var(T.int32, 3)\nz = T.alloc_var(T.int32, init=tx)\nx = V[0]\ny += 1\nI[0] = y + z",
        "b = T.alloc_barrier([128, 64])\nw = T.alloc_global((n, 4), \"float32\")\nu = T.alloc_buffer((8,), \"float16\", scope=\"shared\")\nl = T.alloc_fragment((1,), \"int32\", \"local\")\nT.clear(w[bx, 0:4])\nT.clear(u)\nl[0] = by",
    ]);
}

#[test]
fn annotations() {
    check!(&[
        "S = T.alloc_shared((64, 32), \"float16\")\nR = T.alloc_shared((64, 32), \"float16\")\nP = T.alloc_shared((8, 8), \"float16\")\nT.annotate_layout({S: tilelang.layout.make_swizzled_layout(S), R: T.Layout((64, 32), lambda i, j: (j, i ^ (j // 2))), P: lambda i, j: i * 9 + j})\nT.clear(S)",
        "F = T.alloc_fragment((64, 4), \"float32\")\nG = T.alloc_fragment((64,), \"float32\")\nT.annotate_layout({F: T.Fragment((64, 4), forward_fn=lambda i, j: (i % 32, (i // 32) * 4 + j)), G: T.Fragment((64,), forward_thread_fn=lambda i, rep: i + rep * 64, forward_index_fn=lambda i: 0, replicate=2)})\nT.clear(F)",
        "T.use_swizzle(8, order=\"column\")\nT.use_swizzle(4, enable=False)\nT.annotate_safe_value({A: -1.0})\nT.annotate_l2_hit_ratio({A: 0.5})\nT.annotate_min_blocks_per_sm(2)\nT.annotate_restrict_buffers(A, B)\nT.no_set_max_nreg()",
        "T.annotate_layout({B: T.Layout(B.shape, lambda i, j: (i // 8, j, i % 8))})\nV[0] = 1.0",
        "T.assume(n % 8 == 0)\nT.assume(True)\nT.evaluate(0)\nT.device_assert(by < 4, \"too many\")",
        "T.attr(0, \"pragma_unroll\", 1)\nT.attr(0, \"colour\", 1)\nV[0] = 1.0",
    ]);
}

#[test]
fn synchronisation() {
    check!(&[
        "T.sync_threads()\nT.sync_threads(1, 128)\nT.sync_threads(2)\nT.sync_warp()\nT.sync_grid()\nT.tvm_storage_sync(\"shared\")",
        "bar = T.alloc_barrier([128, 128])\nfor k in T.serial(4):\n    T.mbarrier_wait_parity(bar[k % 2], (k // 2) % 2)\n    T.mbarrier_wait_parity(bar[0], k)\n    T.mbarrier_arrive(bar[1])\nT.barrier_wait(bar, 1)\nT.barrier_arrive(bar)\nT.mbarrier_expect_tx(bar[0], 1024)\nT.mbarrier_arrive_expect_tx(bar[1], 64)",
        "S = T.alloc_shared((64,), \"float32\")\nwith T.ws(1):\n    T.copy(V, S)\n    T.set_max_nreg(24, 0)\nwith T.ws(0):\n    T.inc_max_nreg(240)",
        "T.fence_proxy_async()\nT.warpgroup_arrive()\nT.warpgroup_commit_batch()\nT.warpgroup_wait(1)\nT.annotate_producer_reg_dealloc()\nT.annotate_consumer_reg_alloc(232)",
    ]);
}

#[test]
fn warps() {
    check!(&[
        "I[0] = T.get_lane_idx() + T.get_warp_idx() * 100 + T.get_warp_group_idx() + T.get_warp_idx_sync(64)",
        "x = T.shfl_xor(I[tx % 64], 16)\ny = T.shfl_sync(x, 0, width=8)\nz = T.shfl_up(y, 1) + T.shfl_down(y, 1)\nw = T.tvm_warp_shuffle(T.uint32(0xFFFFFFFF), z, tx % 32, 32, 32)\nI[0] = w",
        "a = T.any_sync(I[tx % 64] > 0)\nb = T.ballot(a)\nc = T.syncthreads_count(I[0])\nI[0] = c + T.cast(b, \"int32\")",
        "s = T.warp_reduce_sum(V[tx % 64])\nm = T.warp_reduce_bitor(I[tx % 64])\nV[0] = s\nI[0] = m",
        "if T.shuffle_elect(128):\n    V[0] = 1.0",
        "total = T.alloc_local((1,), \"float32\")\nwith T.attr(T.comm_reducer(lambda x, y: T.max(x, y), [T.min_value(\"float32\")]), \"reduce_scope\", T.reinterpret(T.uint64(0), dtype=\"handle\")):\n    T.evaluate(T.tvm_thread_allreduce(T.uint32(1), V[tx % 64], True, total[0], tx, dtype=\"handle\"))\nV[0] = total[0]",
    ]);
}

#[test]
fn printing() {
    check!(&[
        "T.print(msg=\"here\")\nT.print(V[0], \"first\")\nS = T.alloc_shared((4,), \"float32\")\nT.print(S, msg=\"S\")",
        "F = T.alloc_fragment((4,), \"float32\")\nT.clear(F)\nT.print(F)",
    ]);
}

#[test]
fn launch_queries() {
    check!(&[
        "I[0] = T.get_thread_extent() + T.get_block_extent(1) + len(T.get_thread_extents())\nI[1] = T.get_block_binding(1) + T.get_block_bindings()[0] + T.get_thread_bindings()[0] + T.get_block_extent(0)",
    ]);
}

/// Every name that TileLang has is either supported or refused with advice.
#[test]
fn names_of_tilelang_are_known() {
    let names = include_str!("tilelang_names.txt");
    let known = |name: &&str| lang::name(name).is_some();
    let refused = |name: &&str| lang::unsupported::is_known(name);
    let unknown: Vec<&str> = names.lines().filter(|n| !known(n) && !refused(n)).collect();
    assert!(unknown.is_empty(), "unknown: {unknown:?}");
    let both: Vec<&str> = names.lines().filter(|n| known(n) && refused(n)).collect();
    // A family of refused names may have supported members; `find` is asked for unknown ones only.
    assert!(
        both.iter().all(|n| n.starts_with("tvm_")),
        "supported and refused: {both:?}"
    );
    let supported = names.lines().filter(known).count();
    assert!(supported >= 280, "only {supported} names are supported");
}

/// Every kernel of the examples becomes tile IR that survives the text form.
#[test]
fn examples_stage() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(root).expect("the examples are there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "py") {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("an example");
        for kernel in kernels(&source) {
            let mut sources = SourceMap::new();
            let file = sources.add(path.display().to_string(), source.as_str());
            let settings = sizes(&source, &kernel);
            let staged = match stage(&sources, file, Some(&kernel), &settings) {
                Ok(staged) => staged,
                Err(diagnostics) => {
                    let texts = diagnostics.iter().map(|d| d.render(&sources, false));
                    panic!("{}", texts.collect::<Vec<_>>().join("\n"));
                }
            };
            let printed = text::print(&staged.func);
            let again = text::parse(&printed, FileId(0)).expect("the text form reads back");
            assert_eq!(text::print(&again), printed);
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen} kernels were found");
}

/// The names of the decorated functions at the top level of a file.
fn kernels(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut decorated = false;
    for line in source.lines() {
        if line.starts_with("@tilelang.jit") || line.starts_with("@T.prim_func") {
            decorated = true;
        } else if let Some(rest) = line.strip_prefix("def ") {
            if decorated && let Some((name, _)) = rest.split_once('(') {
                names.push(name.to_string());
            }
            decorated = false;
        }
    }
    names
}

/// Values for the `T.const` dimensions of an eager kernel, which have no defaults.
fn sizes(source: &str, kernel: &str) -> Vec<(String, SettingValue)> {
    let start = source.find(&format!("def {kernel}(")).unwrap_or(0);
    let body = &source[start..];
    let end = body.find("\n@").unwrap_or(body.len());
    let Some((_, rest)) = body[..end].split_once("T.const(\"") else {
        return Vec::new();
    };
    let names = rest.split('"').next().unwrap_or_default();
    let names = names.split([',', ' ']).filter(|n| !n.is_empty());
    names
        .map(|name| (name.to_string(), SettingValue::Int(256)))
        .collect()
}
