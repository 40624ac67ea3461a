"""Each tile is handed back when the product after its own has been issued."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul(M=128, N=256, K=448, block_M=128, block_N=128, block_K=64, stages=4, dtype="float16"):
    k_tiles = T.ceildiv(K, block_K)

    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=384) as (bx, by):
            A_shared = T.alloc_shared((stages, block_M, block_K), dtype)
            B_shared = T.alloc_shared((stages, block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            full = T.alloc_barrier([128] * stages)
            empty = T.alloc_barrier([256] * stages)

            with T.ws(0):
                T.set_max_nreg(40, 0)
                for k in T.serial(k_tiles):
                    T.mbarrier_wait_parity(empty[k % stages], (k // stages + 1) % 2)
                    T.tma_copy(A[by * block_M, k * block_K], A_shared[k % stages, :, :], barrier=full[k % stages])
                    T.tma_copy(B[bx * block_N, k * block_K], B_shared[k % stages, :, :], barrier=full[k % stages])
                    T.mbarrier_arrive(full[k % stages])

            with T.ws(1, 2):
                T.set_max_nreg(232, 1)
                T.clear(C_local)
                for k in T.serial(k_tiles):
                    T.mbarrier_wait_parity(full[k % stages], (k // stages) % 2)
                    T.wgmma_gemm(A_shared[k % stages, :, :], B_shared[k % stages, :, :], C_local, transpose_B=True)
                    T.warpgroup_wait(1)
                    if k > 0:
                        T.mbarrier_arrive(empty[(k - 1) % stages])
                T.warpgroup_wait(0)
                T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm
