"""Two blocks of a cluster of four have one load between them, the others have their own."""

import tilelang.language as T


@T.prim_func
def copied(A: T.Tensor((512, 64), "float16"), B: T.Tensor((512, 64), "float16")):
    with T.Kernel(8, threads=128, cluster_dims=4) as bx:
        S = T.alloc_shared((64, 64), "float16")
        full = T.alloc_cluster_barrier(1)
        tx = T.get_thread_binding()
        T.tma_copy(A[bx * 64, 0], S, barrier=full, cluster_mask=0b0110)
        if tx == 0:
            T.mbarrier_arrive(full)
        T.mbarrier_wait_parity(full, 0)
        T.copy(S, B[bx * 64, 0])
