"""Matrix multiplication with the K dimension split over blocks: C = A @ B.

    A is (M, K), B is (K, N), C is (M, N) in the accumulator's type.

When M and N are small and K is large there are too few output tiles to fill a GPU. Here split_k
blocks share one tile of C: each multiplies its own range of K and adds its part to C atomically.
A first launch in the same function sets C to zero, so the caller need not.

    tilewright run examples/gemm_splitk.py
    tilewright run examples/gemm_splitk.py --set M=100 --set N=72 --set K=1000 --set split_k=3
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul_splitk(
    M=128,
    N=128,
    K=1024,
    block_M=64,
    block_N=64,
    block_K=32,
    split_k=4,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    # Whole K tiles are handed out, so two splits never share one. A split past the end reads zeros.
    tiles_per_split = T.ceildiv(T.ceildiv(K, block_K), split_k)

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                C[by * block_M + i, bx * block_N + j] = 0

        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), split_k, threads=threads) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_local)
            for k in T.Pipelined(tiles_per_split, num_stages=num_stages):
                k_start = (bz * tiles_per_split + k) * block_K
                T.copy(A[by * block_M, k_start], A_shared)
                T.copy(B[k_start, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)

            T.atomic_add(C[by * block_M, bx * block_N], C_local)

    return gemm


def main():
    import torch

    kernel = matmul_splitk(256, 256, 16384, split_k=16)
    a = torch.randn(256, 16384, device="cuda", dtype=torch.float16)
    b = torch.randn(16384, 256, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(kernel(a, b), (a @ b).float(), rtol=1e-2, atol=1e-1)


if __name__ == "__main__":
    main()
