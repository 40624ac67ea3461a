"""`T.gemm` on tiles of the copy engine: its waits are the compiler's."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul(M=128, N=128, K=320, block_M=128, block_N=64, block_K=64, stages=2, dtype="float16"):
    k_tiles = T.ceildiv(K, block_K)

    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
            A_shared = T.alloc_shared((stages, block_M, block_K), dtype)
            B_shared = T.alloc_shared((stages, block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            full = T.alloc_barrier([128] * stages)
            empty = T.alloc_barrier([128] * stages)

            with T.ws(1):
                for k in T.serial(k_tiles):
                    T.mbarrier_wait_parity(empty[k % stages], (k // stages + 1) % 2)
                    T.tma_copy(A[by * block_M, k * block_K], A_shared[k % stages, :, :], barrier=full[k % stages])
                    T.tma_copy(B[k * block_K, bx * block_N], B_shared[k % stages, :, :], barrier=full[k % stages])
                    T.mbarrier_arrive(full[k % stages])

            with T.ws(0):
                T.clear(C_local)
                for k in T.serial(k_tiles):
                    T.mbarrier_wait_parity(full[k % stages], (k // stages) % 2)
                    T.gemm(A_shared[k % stages, :, :], B_shared[k % stages, :, :], C_local)
                    T.mbarrier_arrive(empty[k % stages])
                T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm
