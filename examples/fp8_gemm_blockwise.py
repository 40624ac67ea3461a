"""FP8 matrix multiplication with block scales: C = (A * scale_A) @ (B * scale_B)^T.

    A is (M, K) and B is (N, K), both fp8; C is (M, N) in out_dtype.
    scale_A is (K / 128, M): one scale for 128 neighbours of a row of A.
    scale_B is (N / 128, K / 128): one scale for each square of 128 x 128 elements of B.

Tensor cores add fp8 products with fewer bits than float32 has, and scales change every 128 of K: the
product of each K tile starts at zero, and is scaled and added to a float32 sum.

Scales of A lie with M along the rows: those of a tile are one run of memory, which a copy engine
brings along with the tile. With (M, K / 128) they would be gathered, four bytes a row. The columns of
a block lie in one square of B, so a block has one scale of B for each K tile, and keeps them all in
shared memory.

On Hopper the sum and the product of a tile of 256 x 128 share the registers of two warp groups.

    tilewright run examples/fp8_gemm_blockwise.py
    tilewright run examples/fp8_gemm_blockwise.py --set M=100 --set N=90 --set K=200
    tilewright run examples/fp8_gemm_blockwise.py --set dtype=float8_e5m2 --set block_N=64
    tilewright compile examples/fp8_gemm_blockwise.py --set block_M=256 --set num_stages=3 --target sm_90a --explain schedule
"""

import tilelang
import tilelang.language as T

GROUP = 128


@tilelang.jit(out_idx=[-1])
def matmul_blockwise(
    M=256,
    N=256,
    K=512,
    block_M=128,
    block_N=128,
    num_stages=2,
    threads=256,
    dtype="float8_e4m3fn",
    out_dtype="bfloat16",
):
    assert GROUP % block_N == 0, "the columns of a block lie in one square of B"
    groups_k = T.ceildiv(K, GROUP)
    groups_n = T.ceildiv(N, GROUP)

    @T.prim_func
    def gemm_blockwise(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        scale_A: T.Tensor((groups_k, M), "float32"),
        scale_B: T.Tensor((groups_n, groups_k), "float32"),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, GROUP), dtype)
            B_shared = T.alloc_shared((block_N, GROUP), dtype)
            rows_shared = T.alloc_shared((block_M,), "float32")
            square_shared = T.alloc_shared((groups_k,), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            C_part = T.alloc_fragment((block_M, block_N), "float32")
            C_sum = T.alloc_fragment((block_M, block_N), "float32")

            # Neighbouring blocks share panels of A and B, so walking the grid in panels keeps them in L2.
            T.use_swizzle(panel_size=8)

            T.copy(scale_B[bx * block_N // GROUP, 0], square_shared)
            T.clear(C_sum)
            for k in T.Pipelined(groups_k, num_stages=num_stages):
                T.copy(A[by * block_M, k * GROUP], A_shared)
                T.copy(B[bx * block_N, k * GROUP], B_shared)
                T.copy(scale_A[k, by * block_M], rows_shared)
                for i in T.Parallel(block_M):
                    scale[i] = rows_shared[i] * square_shared[k]
                T.gemm(A_shared, B_shared, C_part, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_M, block_N):
                    C_sum[i, j] += C_part[i, j] * scale[i]
            T.copy(C_sum, C[by * block_M, bx * block_N])

    return gemm_blockwise


def main():
    import torch

    M, N, K = 1024, 512, 2048
    a = torch.randn(M, K, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(N, K, device="cuda").to(torch.float8_e4m3fn)
    scale_a = torch.rand(K // GROUP, M, device="cuda") + 0.5
    scale_b = torch.rand(N // GROUP, K // GROUP, device="cuda") + 0.5
    expected = (a.float() * scale_a.T.repeat_interleave(GROUP, 1)) @ (
        b.float() * scale_b.repeat_interleave(GROUP, 0).repeat_interleave(GROUP, 1)
    ).T
    kernel = matmul_blockwise(M, N, K, block_M=256, num_stages=3)
    torch.testing.assert_close(kernel(a, b, scale_a, scale_b).float(), expected, rtol=2e-2, atol=1)


if __name__ == "__main__":
    main()
