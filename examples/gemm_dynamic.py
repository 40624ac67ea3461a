"""Matrix multiplication whose row count is known only at launch: C = A @ B with symbolic M.

    A is (m, K), B is (K, N), C is (m, N).

One compiled kernel serves every m, so a batch of varying size does not compile again. The grid is
a function of m; the last row of blocks may be partial. N and K are fixed when the kernel is built.
Giving M a number builds an ordinary static kernel from the same source.

    tilewright run examples/gemm_dynamic.py --set m=300
    tilewright run examples/gemm_dynamic.py --set M=300 --set N=200
    tilewright run examples/gemm_dynamic.py:matmul_dynamic_mnk --set m=100 --set n=72 --set k=40
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul_dynamic(
    M=None,
    N=256,
    K=256,
    block_M=64,
    block_N=64,
    block_K=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    if M is None:
        M = T.dynamic("m")

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


@tilelang.jit(out_idx=[-1])
def matmul_dynamic_mnk(block_M=64, block_N=64, block_K=32, num_stages=2, dtype="float16", accum_dtype="float32"):
    """All three sizes are symbolic, the depth of the K loop included."""
    m, n, k = T.dynamic("m, n, k")

    @T.prim_func
    def gemm(
        A: T.Tensor((m, k), dtype),
        B: T.Tensor((k, n), dtype),
        C: T.Tensor((m, n), dtype),
    ):
        with T.Kernel(T.ceildiv(n, block_N), T.ceildiv(m, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(k, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


def main():
    import torch

    kernel = matmul_dynamic(N=1024, K=1024)
    b = torch.randn(1024, 1024, device="cuda", dtype=torch.float16)
    for m in (1, 64, 1000):
        a = torch.randn(m, 1024, device="cuda", dtype=torch.float16)
        torch.testing.assert_close(kernel(a, b), a @ b, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
