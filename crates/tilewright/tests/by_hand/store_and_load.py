"""Tiles come and go by the copy engine through one buffer; threads change them in between."""

import tilelang.language as T


@T.prim_func
def shifted(A: T.Tensor((3, 64, 128), "float16"), B: T.Tensor((3, 64, 128), "float16")):
    with T.Kernel(2, threads=256) as bx:
        S = T.alloc_shared((64, 64), "float16")
        bar = T.alloc_barrier(256)
        for k in T.serial(3):
            T.tma_copy(A[k, 0, bx * 64], S, barrier=bar)
            T.mbarrier_arrive(bar)
            T.mbarrier_wait_parity(bar, k % 2)
            for i, j in T.Parallel(64, 64):
                S[i, j] = S[i, j] + T.float16(1)
            T.fence_proxy_async()
            T.sync_threads()
            T.tma_copy(S, B[k, 0, bx * 64])
            T.tma_store_arrive()
            T.tma_store_wait()
