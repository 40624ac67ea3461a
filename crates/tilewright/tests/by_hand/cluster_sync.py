"""A tile comes to both blocks of a cluster by one load; they meet before the next one comes."""

import tilelang.language as T


@T.prim_func
def shifted(A: T.Tensor((3, 128, 64), "float16"), B: T.Tensor((3, 256, 64), "float16")):
    with T.Kernel(4, threads=128, cluster_dims=(2, 1, 1)) as bx:
        rank = T.block_rank_in_cluster()
        S = T.alloc_shared((64, 64), "float16")
        full = T.alloc_cluster_barrier(128)
        for k in T.serial(3):
            T.tma_copy(A[k, bx // 2 * 64, 0], S, barrier=full, cluster_mask=0b11)
            T.mbarrier_arrive(full)
            T.mbarrier_wait_parity(full, k % 2)
            for i, j in T.Parallel(64, 64):
                B[k, bx * 64 + i, j] = S[i, j] + T.Cast("float16", rank)
            T.cluster_sync()
