"""Four tiles of C = A @ B for each block, one after another."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul(M=1024, N=256, K=1024, block_M=128, block_N=128, block_K=64, num_stages=3, dtype="bfloat16"):
    @T.prim_func
    def tiles_in_a_block(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(N // block_N, M // (4 * block_M), threads=256) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            for t in T.serial(4):
                T.clear(C_local)
                for k in T.Pipelined(K // block_K, num_stages=num_stages):
                    T.copy(A[(by * 4 + t) * block_M, k * block_K], A_shared)
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                    T.gemm(A_shared, B_shared, C_local, transpose_B=True)
                T.copy(C_local, C[(by * 4 + t) * block_M, bx * block_N])

    return tiles_in_a_block


kernel = matmul()
