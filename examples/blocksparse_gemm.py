"""Matrix multiplication that skips blocks a mask rules out.

    A is (M, K), B is (K, N), C is (M, N); mask is (m_blocks, n_blocks, k_blocks) of bool.
    C = A @ B where the products of row block i, column block j and depth block k count only if mask[i, j, k].

The mask is read by the whole block at once, so the branch is the same for all its threads, and a
ruled-out depth block costs neither the copies nor the gemm.

    tilewright run examples/blocksparse_gemm.py
    tilewright run examples/blocksparse_gemm.py --set M=100 --set N=90 --set K=150
"""

import tilewright as tilelang
import tilewright.language as T


@tilelang.jit(out_idx=[-1])
def blocksparse_matmul(
    M=256,
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
    sizes = ((M, block_M), (N, block_N), (K, block_K))
    m_blocks, n_blocks, k_blocks = [T.ceildiv(size, block) for size, block in sizes]

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        mask: T.Tensor((m_blocks, n_blocks, k_blocks), "bool"),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(n_blocks, m_blocks, threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_local)
            for k in T.Pipelined(k_blocks, num_stages=num_stages):
                if mask[by, bx, k]:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


def main():
    import torch

    a = torch.randn(1024, 1024, device="cuda", dtype=torch.float16)
    b = torch.randn(1024, 1024, device="cuda", dtype=torch.float16)
    mask = torch.ones(16, 16, 32, device="cuda", dtype=torch.bool)
    torch.testing.assert_close(blocksparse_matmul(1024, 1024, 1024)(a, b, mask), a @ b, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
