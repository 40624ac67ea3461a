"""Matrix multiplication of a mixture of experts, in FP8: each expert has room for as many rows, and
a number of them that are valid.

    A is (experts, capacity, K), B is (experts, N, K), both fp8; C is (experts, capacity, N).
    counts[e] is how many rows of expert e are valid, from the first one on:
    C[e, i] = A[e, i] @ B[e]^T for i < counts[e]; the other rows of C stay as they are.
    scale_A is (experts, K / 128, capacity): one scale for 128 neighbours of a row of A.
    scale_B is (experts, N / 128, K / 128): one scale for each square of 128 x 128 elements of B.

The product of each K tile is scaled and added to a float32 sum, as in fp8_gemm_blockwise.py. The grid
is large enough for all rows; blocks without a valid one leave at once.

    tilewright run examples/moe_gemm.py
    tilewright run examples/moe_gemm.py --set experts=3 --set capacity=100 --set N=100 --set K=200
    tilewright compile examples/moe_gemm.py --target sm_90a --explain schedule
"""

import tilelang
import tilelang.language as T

GROUP = 128


@tilelang.jit
def moe_matmul(
    experts=4,
    capacity=256,
    N=256,
    K=256,
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
    def moe_gemm(
        A: T.Tensor((experts, capacity, K), dtype),
        B: T.Tensor((experts, N, K), dtype),
        scale_A: T.Tensor((experts, groups_k, capacity), "float32"),
        scale_B: T.Tensor((experts, groups_n, groups_k), "float32"),
        counts: T.Tensor((experts,), "int32"),
        C: T.Tensor((experts, capacity, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(capacity, block_M), experts, threads=threads) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, GROUP), dtype)
            B_shared = T.alloc_shared((block_N, GROUP), dtype)
            rows_shared = T.alloc_shared((block_M,), "float32")
            square_shared = T.alloc_shared((groups_k,), "float32")
            C_shared = T.alloc_shared((block_M, block_N), out_dtype)
            scale = T.alloc_fragment((block_M,), "float32")
            C_part = T.alloc_fragment((block_M, block_N), "float32")
            C_sum = T.alloc_fragment((block_M, block_N), "float32")
            T.annotate_layout({C_shared: tilelang.layout.make_swizzled_layout(C_shared)})

            valid = counts[bz]
            if by * block_M < valid:
                T.copy(scale_B[bz, bx * block_N // GROUP, 0], square_shared)
                T.clear(C_sum)
                for k in T.Pipelined(groups_k, num_stages=num_stages):
                    T.copy(A[bz, by * block_M, k * GROUP], A_shared)
                    T.copy(B[bz, bx * block_N, k * GROUP], B_shared)
                    T.copy(scale_A[bz, k, by * block_M], rows_shared)
                    for i in T.Parallel(block_M):
                        scale[i] = rows_shared[i] * square_shared[k]
                    T.gemm(A_shared, B_shared, C_part, transpose_B=True, clear_accum=True)
                    for i, j in T.Parallel(block_M, block_N):
                        C_sum[i, j] += C_part[i, j] * scale[i]

                T.copy(C_sum, C_shared)
                for i, j in T.Parallel(block_M, block_N):
                    if by * block_M + i < valid:
                        C[bz, by * block_M + i, bx * block_N + j] = C_shared[i, j]

    return moe_gemm


def main():
    import torch

    counts, capacity, N, K = (5, 0, 256, 130), 256, 512, 256
    a = torch.randn(len(counts), capacity, K, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(len(counts), N, K, device="cuda").to(torch.float8_e4m3fn)
    scale_a = torch.rand(len(counts), K // GROUP, capacity, device="cuda") + 0.5
    scale_b = torch.rand(len(counts), N // GROUP, K // GROUP, device="cuda") + 0.5
    c = torch.zeros(len(counts), capacity, N, device="cuda", dtype=torch.bfloat16)
    left = a.float() * scale_a.transpose(1, 2).repeat_interleave(GROUP, 2)
    right = b.float() * scale_b.repeat_interleave(GROUP, 1).repeat_interleave(GROUP, 2)
    expected = left @ right.transpose(1, 2)
    for expert, count in enumerate(counts):
        expected[expert, count:] = 0
    kernel = moe_matmul(len(counts), capacity, N, K)
    kernel(a, b, scale_a, scale_b, torch.tensor(counts, device="cuda", dtype=torch.int32), c)
    torch.testing.assert_close(c.float(), expected, rtol=2e-2, atol=1)


if __name__ == "__main__":
    main()
