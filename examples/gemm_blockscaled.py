"""Matrix multiplication of elements with block scales: C = (A * scale_A) @ (B * scale_B)^T.

    A is (M, K) of dtype and B is (N, K) of dtype_B, which is dtype unless it is said: fp8, fp6 with four
    elements in three bytes, or fp4 with two in a byte.
    scale_A is (M, K / 32) and scale_B is (N, K / 32): a power of two (E8M0) for 32 neighbours of a row.
    C is (M, N) in out_dtype.

This is what the OCP calls MXFP8, MXFP6 and MXFP4. On gfx950 matrix instructions take the scales; elsewhere
elements are multiplied by them on the way, into tiles of bfloat16.

    tilewright run examples/gemm_blockscaled.py
    tilewright run examples/gemm_blockscaled.py --set dtype=float4_e2m1fn
    tilewright run examples/gemm_blockscaled.py --set dtype=float6_e2m3fn
    tilewright run examples/gemm_blockscaled.py --set dtype_B=float4_e2m1fn
    tilewright run examples/gemm_blockscaled.py --set M=100 --set N=90
    tilewright cycles examples/gemm_blockscaled.py --target gfx950 --set block_M=256 --set block_N=256 --set threads=512
"""

import tilelang
import tilelang.language as T

GROUP = 32


@tilelang.jit(out_idx=[-1])
def matmul_blockscaled(
    M=256,
    N=256,
    K=512,
    block_M=64,
    block_N=64,
    block_K=128,
    num_stages=2,
    threads=128,
    dtype="float8_e4m3fn",
    dtype_B=None,
    out_dtype="bfloat16",
):
    dtype_B = dtype_B or dtype
    assert block_K % GROUP == 0 and K % block_K == 0, "scales are of whole groups of K"

    @T.prim_func
    def gemm_blockscaled(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype_B),
        scale_A: T.Tensor((M, K // GROUP), "float8_e8m0fnu"),
        scale_B: T.Tensor((N, K // GROUP), "float8_e8m0fnu"),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype_B)
            rows_shared = T.alloc_shared((block_M, block_K // GROUP), "float8_e8m0fnu")
            columns_shared = T.alloc_shared((block_N, block_K // GROUP), "float8_e8m0fnu")
            C_local = T.alloc_fragment((block_M, block_N), "float32")

            # Neighbouring blocks share panels of A and B, so walking the grid in panels keeps them in L2.
            T.use_swizzle(panel_size=8)

            T.clear(C_local)
            for k in T.Pipelined(K // block_K, num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                T.copy(scale_A[by * block_M, k * block_K // GROUP], rows_shared)
                T.copy(scale_B[bx * block_N, k * block_K // GROUP], columns_shared)
                T.gemm_blockscaled(A_shared, B_shared, C_local, rows_shared, columns_shared, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm_blockscaled


def main():
    import torch

    M, N, K = 1024, 512, 2048
    a = torch.randn(M, K, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(N, K, device="cuda").to(torch.float8_e4m3fn)
    scale_a = torch.exp2(torch.randint(-3, 4, (M, K // GROUP), device="cuda").float()).to(torch.float8_e8m0fnu)
    scale_b = torch.exp2(torch.randint(-3, 4, (N, K // GROUP), device="cuda").float()).to(torch.float8_e8m0fnu)
    expected = (a.float() * scale_a.float().repeat_interleave(GROUP, 1)) @ (
        b.float() * scale_b.float().repeat_interleave(GROUP, 1)
    ).T
    kernel = matmul_blockscaled(M, N, K)
    torch.testing.assert_close(kernel(a, b, scale_a, scale_b).float(), expected, rtol=2e-2, atol=1)


if __name__ == "__main__":
    main()
