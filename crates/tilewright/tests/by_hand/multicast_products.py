"""Two blocks of a cluster multiply the same rows of A: the first one's producer brings them to both.

That one waits for the consumers of both blocks, who arrive in its block (`away`); each producer
waits for those of its own (`empty`)."""

import tilelang.language as T

M, N, K = 128, 128, 320
block_M, block_N, block_K = 64, 64, 64
stages = 3


@T.prim_func
def multiplied(
    A: T.Tensor((M, K), "float16"),
    B: T.Tensor((N, K), "float16"),
    C: T.Tensor((M, N), "float32"),
):
    with T.Kernel(N // block_N, M // block_M, threads=256, cluster_dims=(2, 1, 1)) as (bx, by):
        rank = T.block_rank_in_cluster()
        A_shared = T.alloc_shared((stages, block_M, block_K), "float16")
        B_shared = T.alloc_shared((stages, block_N, block_K), "float16")
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        full = T.alloc_cluster_barrier([128] * stages)
        empty = T.alloc_barrier([128] * stages)
        away = T.alloc_cluster_barrier([2 * 128] * stages)
        with T.ws(1):
            for k in T.serial(K // block_K):
                T.mbarrier_wait_parity(empty[k % stages], (k // stages + 1) % 2)
                if rank == 0:
                    T.mbarrier_wait_parity(away[k % stages], (k // stages + 1) % 2)
                T.tma_copy(A[by * block_M, k * block_K], A_shared[k % stages, :, :], barrier=full[k % stages], cluster_mask=0b11)
                T.tma_copy(B[bx * block_N, k * block_K], B_shared[k % stages, :, :], barrier=full[k % stages])
                T.mbarrier_arrive(full[k % stages])
        with T.ws(0):
            T.clear(C_local)
            for k in T.serial(K // block_K):
                T.mbarrier_wait_parity(full[k % stages], (k // stages) % 2)
                T.wgmma_gemm(A_shared[k % stages, :, :], B_shared[k % stages, :, :], C_local, transpose_B=True)
                T.wait_wgmma(0)
                T.mbarrier_arrive(empty[k % stages])
                T.mbarrier_arrive(away[k % stages], 0)
            T.copy(C_local, C[by * block_M, bx * block_N])
        T.cluster_sync()
