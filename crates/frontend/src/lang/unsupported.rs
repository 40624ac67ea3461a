//! Names that TileLang has and this compiler does not: known, refused, with what to use.
//!
//! A row is a name, or the beginning of a family of names ending in `*`.

use tilewright_ir::Span;

use crate::record::Recorder;
use crate::{Error, codes};

/// The diagnostic for a name of TileLang that is not supported; `None` for unknown names.
pub(crate) fn unsupported_name(rec: &Recorder, name: &str, span: Span) -> Option<Error> {
    let (_, instead) = find(name)?;
    let mut error = rec.error(
        codes::UNSUPPORTED_LANGUAGE_NAME,
        span,
        format!("`T.{name}` is known from TileLang but not supported"),
    );
    if !instead.is_empty() {
        error = error.help(*instead);
    }
    Some(error.into())
}

/// Whether TileLang has the name and this compiler refuses it.
pub fn is_known(name: &str) -> bool {
    find(name).is_some()
}

fn find(name: &str) -> Option<&'static (&'static str, &'static str)> {
    TABLE
        .iter()
        .find(|(pattern, _)| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == *pattern,
        })
}

const USE_GEMM: &str = "use `T.gemm`; the compiler chooses the matrix instruction of the target";
const USE_BLOCKSCALED: &str = "use `T.gemm_blockscaled`, whose scales are tiles of float8_e8m0fnu, one for 32 elements along K";
const USE_GEMM_SP: &str = "use `T.gemm_sp`, whose result is there when it ends";
const USE_COPY: &str = "use `T.copy`; the compiler chooses vector width and instruction";
const USE_TMA: &str = "use `T.copy`; in a `T.Pipelined` loop it runs ahead";
const USE_KERNEL: &str = "write the body as statements inside `with T.Kernel(...)`";

static TABLE: &[(&str, &str)] = &[
    (
        "CUDASourceCodeKernel",
        "put the code into `T.import_source` and call it with `T.call_extern`",
    ),
    (
        "KernelLaunchFrame",
        "use `T.get_thread_binding`, `T.get_block_extent` and their relatives",
    ),
    ("meta_class", "use functions and `@T.macro`"),
    ("alloc_descriptor", USE_GEMM),
    ("alloc_wgmma_desc", USE_GEMM),
    ("alloc_tcgen05_*", USE_GEMM),
    ("initialize_wgmma_descriptor", USE_GEMM),
    ("initialize_tcgen05_descriptor", USE_GEMM),
    ("increase_descriptor_offset", USE_GEMM),
    ("compute_gmma_descriptor", USE_GEMM),
    ("compute_umma_descriptor", USE_GEMM),
    (
        "deallocate_tmem",
        "leave it out; tensor memory is freed at the end of the kernel",
    ),
    (
        "allocate",
        "use `T.alloc_shared`, `T.alloc_fragment` or `T.alloc_local`",
    ),
    (
        "FragmentBuffer",
        "pass the buffer to a `@T.macro`; its parameters need no annotation",
    ),
    (
        "SharedBuffer",
        "pass the buffer to a `@T.macro`; its parameters need no annotation",
    ),
    (
        "LocalBuffer",
        "pass the buffer to a `@T.macro`; its parameters need no annotation",
    ),
    (
        "BaseTileScheduler",
        "use `T.Persistent` or compute the tile number in a loop",
    ),
    (
        "cluster_arrive_relaxed",
        "use `T.cluster_arrive()`, which orders memory too",
    ),
    ("clc_*", "use `T.Persistent` for dynamic tiles"),
    ("tma_gather4", USE_TMA),
    ("tma_gather4_bytes", USE_TMA),
    ("tma_scatter4", USE_TMA),
    ("tma_load_2sm", USE_TMA),
    (
        "ptx_cp_async_*",
        "use `T.async_copy`, or `T.copy` in a `T.Pipelined` loop",
    ),
    (
        "cp_async_barrier_noinc",
        "use `T.copy`, and `T.mbarrier_arrive(b)` after it",
    ),
    (
        "ptx_init_barrier_thread_count",
        "allocate with `T.alloc_barrier(arrive_count)`",
    ),
    (
        "create_barriers",
        "allocate with `T.alloc_barrier([count, ...])`",
    ),
    ("ds_read_tr*", USE_COPY),
    ("tcgen05_gemm_blockscaled", USE_BLOCKSCALED),
    ("mma_gemm_blockscaled", USE_BLOCKSCALED),
    ("tcgen05_mma_blockscaled", USE_BLOCKSCALED),
    (
        "make_blockscaled_gemm_layout",
        "leave the layout to the compiler",
    ),
    ("wgmma_gemm_sp", USE_GEMM_SP),
    ("tcgen05_gemm_sp", USE_GEMM_SP),
    ("wgmma_mma", USE_GEMM),
    ("tcgen05_mma", USE_GEMM),
    (
        "tcgen05_mma_arrive",
        "use `T.gemm`, whose result is there when it ends",
    ),
    (
        "tcgen05_before_thread_sync",
        "leave it out; the compiler orders tensor memory",
    ),
    (
        "tcgen05_after_thread_sync",
        "leave it out; the compiler orders tensor memory",
    ),
    ("tcgen05_cp_warpx4", USE_GEMM),
    ("tcgen05_sf_warp_transpose", USE_GEMM),
    (
        "warpgroup_fence_operand",
        "leave it out; the compiler keeps accumulators in place",
    ),
    ("ptx_mma*", USE_GEMM),
    ("ptx_wgmma_*", USE_GEMM),
    ("ptx_tcgen05_*", USE_GEMM),
    ("ptx_ldmatrix", USE_GEMM),
    ("get_ldmatrix_offset", USE_GEMM),
    ("get_mma_micro_size", USE_GEMM),
    (
        "get_swizzle_layout",
        "use `tilelang.layout.make_swizzled_layout(buffer)`",
    ),
    ("mma_store_index_map", USE_GEMM),
    ("mma_fill", "use `T.fill`"),
    ("mfma*", USE_GEMM),
    ("rdna_wmma*", USE_GEMM),
    ("tvm_mma_sync", USE_GEMM),
    ("tvm_bmma_sync", USE_GEMM),
    ("tvm_load_matrix_sync", USE_COPY),
    ("tvm_store_matrix_sync", USE_COPY),
    ("tvm_fill_fragment", "use `T.fill`"),
    ("cooperative_tensor_*", USE_GEMM),
    ("TensorCoreIntrinEmitter*", USE_GEMM),
    ("SparseTensorCoreIntrinEmitter", USE_GEMM),
    ("WGMMATensorCoreIntrinEmitter", USE_GEMM),
    ("WGSparseTensorCoreIntrinEmitter", USE_GEMM),
    ("TCGEN05*", USE_GEMM),
    ("WGMMADescriptorParams", USE_GEMM),
    ("MatrixCore*", USE_GEMM),
    ("WMMAIntrinEmitter", USE_GEMM),
    (
        "annotate_ws_schedule",
        "leave it out; the compiler makes the schedule, or write `T.ws` by hand",
    ),
    ("WS*", "write warp specialisation with `with T.ws(group):`"),
    (
        "named_barrier_arrive",
        "use `T.sync_threads(barrier_id, arrive_count)` in both groups",
    ),
    (
        "activemask",
        "all lanes take part here; use `T.ballot(predicate)`",
    ),
    (
        "tvm_warp_activemask",
        "all lanes take part here; use `T.ballot(predicate)`",
    ),
    (
        "match_any_sync",
        "compare values exchanged with `T.shfl_sync`",
    ),
    (
        "match_all_sync",
        "use `T.all_sync(value == T.shfl_sync(value, 0))`",
    ),
    ("__fns", "use `T.popcount` and `T.clz`"),
    (
        "call_intrin",
        "use `T.call_extern` with a function from `T.import_source`",
    ),
    (
        "call_llvm_*",
        "use `T.call_extern` with a function from `T.import_source`",
    ),
    (
        "call_packed*",
        "host functions cannot be called from a kernel",
    ),
    (
        "call_cpacked*",
        "host functions cannot be called from a kernel",
    ),
    (
        "tvm_access_ptr",
        "use `T.access_ptr(A[i], \"r\")` or `T.address_of(A[i])`",
    ),
    ("Shuffle", "use `T.extract_lane` and `T.Broadcast`"),
    ("vectorlow", "use `T.extract_lane`"),
    ("vectorhigh", "use `T.extract_lane`"),
    ("vectorcombine", "use `T.extract_lane`"),
    ("vscale", ""),
    ("thread_return", "put the rest of the kernel into an `if`"),
    ("ret", "put the rest of the kernel into an `if`"),
    ("undef", "allocate and do not fill it"),
    ("isnullptr", ""),
    ("q_multiply_shift*", "use a 64-bit product and `>>`"),
    (
        "start_profile_intrinsic",
        "leave it out; use the compiler's reports",
    ),
    (
        "end_profile_intrinsic",
        "leave it out; use the compiler's reports",
    ),
    ("tvm_*", "use the tile language's own functions"),
    ("anylist_*", "host functions cannot be used in a kernel"),
    ("TVMBackend*", "host functions cannot be used in a kernel"),
    ("lookup_param", "pass it as a parameter"),
    ("sblock*", USE_KERNEL),
    ("block", USE_KERNEL),
    ("reads", USE_KERNEL),
    ("writes", USE_KERNEL),
    ("axis", USE_KERNEL),
    ("where", USE_KERNEL),
    ("init", USE_KERNEL),
    (
        "launch_thread",
        "use `with T.Kernel(blocks, threads=n)` and `T.get_thread_binding`",
    ),
    ("env_thread", "use `T.get_thread_binding`"),
    (
        "match_buffer",
        "annotate the parameter: `A: T.Tensor(shape, dtype)`",
    ),
    ("decl_buffer", "use `T.view` or `T.make_tensor`"),
    ("buffer_decl", "use `T.view` or `T.make_tensor`"),
    ("buffer_store", "write `A[i] = value`"),
    ("If", "write `if condition:`"),
    ("Then", "write `if condition:`"),
    ("Else", "write `else:`"),
    ("While", "write `while condition:`"),
    (
        "Assert",
        "write `assert condition, message` or `T.device_assert`",
    ),
    ("let", "write `x = value`"),
    ("LetStmt", "write `x = value`"),
    ("realize", USE_KERNEL),
    ("func_name", ""),
    ("func_ret", ""),
    ("arg", "annotate the parameters of the function"),
    ("target", "choose the target when compiling"),
    ("index_map", "use `T.Layout(shape, lambda i, j: ...)`"),
    ("iter_var", USE_KERNEL),
    (
        "determine_fp8_type",
        "name the type: `T.float8_e4m3fn` or `T.float8_e5m2`",
    ),
    (
        "determine_torch_fp8_type",
        "name the type: `T.float8_e4m3fn` or `T.float8_e5m2`",
    ),
    ("linear_index", "write the sum of products"),
    ("region", "slice the buffer: `A[a:b, c:d]`"),
    ("cumsum_fragment", "use `T.cumsum`"),
    ("cummax_fragment", "use `T.cummax`"),
    ("type_annotation", ""),
    ("WarpSpecializeFrame", "write `with T.ws(group):`"),
    (
        "float4_e2m1_unpacked",
        "use `T.float4_e2m1fn`, which is packed",
    ),
    ("float8_e3m4*", "use `T.float8_e4m3fn`"),
    ("float8_e4m3b11fnuz*", "use `T.float8_e4m3fnuz`"),
    ("CLC*", "use `T.Persistent` for dynamic tiles"),
];
