"""FP8 matrix multiplication with two-level accumulation: C = A @ B^T.

    A is (M, K) and B is (N, K), both fp8; C is (M, N) in out_dtype.

Tensor cores add fp8 products with fewer bits than float32 has. To keep long sums accurate, the
partial sum of every `promote` K tiles is added into a second, ordinary float32 accumulator.

matmul_fp8_fast leaves that to the tensor cores, as fast accumulation does elsewhere, and has one
scale for each operand. On Hopper a sum keeps 13 fraction bits: of K = 8192 random terms it is off by
2e-3, of terms with one sign by 13 %.

matmul_fp8_scaled adds scales, as fp8 training does: A has one for each row and group of
columns, B one for each square of group x group elements.

    tilewright run examples/gemm_fp8.py
    tilewright run examples/gemm_fp8.py --set dtype=float8_e5m2 --set M=100 --set N=90 --set K=200
    tilewright run examples/gemm_fp8.py:matmul_fp8_fast
    tilewright run examples/gemm_fp8.py:matmul_fp8_scaled
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul_fp8(
    M=256,
    N=256,
    K=256,
    block_M=64,
    block_N=64,
    block_K=64,
    promote=2,
    num_stages=2,
    threads=128,
    dtype="float8_e4m3fn",
    out_dtype="float32",
    accum_dtype="float32",
):
    @T.prim_func
    def gemm_fp8(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            C_sum = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_local)
            T.clear(C_sum)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
                if (k + 1) % promote == 0:
                    for i, j in T.Parallel(block_M, block_N):
                        C_sum[i, j] += C_local[i, j]
                    T.clear(C_local)

            # What was left over when the tile count is not a multiple of `promote`.
            for i, j in T.Parallel(block_M, block_N):
                C_sum[i, j] += C_local[i, j]
            T.copy(C_sum, C[by * block_M, bx * block_N])

    return gemm_fp8


@tilelang.jit(out_idx=[-1])
def matmul_fp8_fast(
    M=256,
    N=256,
    K=256,
    block_M=128,
    block_N=128,
    block_K=128,
    num_stages=2,
    threads=256,
    dtype="float8_e4m3fn",
    out_dtype="bfloat16",
):
    @T.prim_func
    def gemm_fp8_fast(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        scale_A: T.Tensor((1,), "float32"),
        scale_B: T.Tensor((1,), "float32"),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")

            # Neighbouring blocks share panels of A and B, so walking the grid in panels keeps them in L2.
            T.use_swizzle(panel_size=16)

            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] *= scale_A[0] * scale_B[0]
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm_fp8_fast


@tilelang.jit(out_idx=[-1])
def matmul_fp8_scaled(
    M=256,
    N=256,
    K=256,
    block_M=64,
    block_N=64,
    group=128,
    num_stages=2,
    threads=128,
    dtype="float8_e4m3fn",
    out_dtype="bfloat16",
):
    groups_k = T.ceildiv(K, group)
    groups_n = T.ceildiv(N, group)

    @T.prim_func
    def gemm_fp8_scaled(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        scale_A: T.Tensor((M, groups_k), "float32"),
        scale_B: T.Tensor((groups_n, groups_k), "float32"),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, group), dtype)
            B_shared = T.alloc_shared((block_N, group), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            C_sum = T.alloc_fragment((block_M, block_N), "float32")
            row_scale = T.alloc_fragment((block_M,), "float32")

            T.clear(C_sum)
            # One K tile is one scaling group, so a tile's scales are the same for all of its columns.
            for k in T.Pipelined(groups_k, num_stages=num_stages):
                T.copy(A[by * block_M, k * group], A_shared)
                T.copy(B[bx * block_N, k * group], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True, clear_accum=True)
                for i in T.Parallel(block_M):
                    row_scale[i] = scale_A[by * block_M + i, k]
                for i, j in T.Parallel(block_M, block_N):
                    C_sum[i, j] += C_local[i, j] * row_scale[i] * scale_B[(bx * block_N + j) // group, k]
            T.copy(C_sum, C[by * block_M, bx * block_N])

    return gemm_fp8_scaled


def main():
    import torch

    a = torch.randn(1024, 2048, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(1024, 2048, device="cuda").to(torch.float8_e4m3fn)
    kernel = matmul_fp8(1024, 1024, 2048, 128, 128, 128)
    torch.testing.assert_close(kernel(a, b), a.float() @ b.float().T, rtol=1e-2, atol=1e-1)


if __name__ == "__main__":
    main()
