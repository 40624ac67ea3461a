"""A producer brings tiles, two warp groups multiply them and wait for their products."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul(M=200, N=136, K=456, block_M=128, block_N=128, block_K=64, stages=3, dtype="bfloat16"):
    k_tiles = T.ceildiv(K, block_K)

    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=384) as (bx, by):
            A_shared = T.alloc_shared((stages, block_M, block_K), dtype)
            B_shared = T.alloc_shared((stages, block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            full = T.alloc_barrier([128] * stages)
            empty = T.alloc_barrier([256] * stages)

            with T.ws(2):
                T.set_max_nreg(24, 0)
                for k in T.serial(k_tiles):
                    T.mbarrier_wait_parity(empty[k % stages], (k // stages + 1) % 2)
                    T.tma_copy(A[by * block_M, k * block_K], A_shared[k % stages, :, :], barrier=full[k % stages])
                    T.tma_copy(B[k * block_K, bx * block_N], B_shared[k % stages, :, :], barrier=full[k % stages])
                    T.mbarrier_arrive(full[k % stages])

            with T.ws(0, 1):
                T.set_max_nreg(240, 1)
                T.clear(C_local)
                for k in T.serial(k_tiles):
                    T.mbarrier_wait_parity(full[k % stages], (k // stages) % 2)
                    T.wgmma_gemm(A_shared[k % stages, :, :], B_shared[k % stages, :, :], C_local)
                    T.wait_wgmma(0)
                    T.mbarrier_arrive(empty[k % stages])
                T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm
