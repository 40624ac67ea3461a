"""Each warp group stores its half of the result; waits for both kinds of completion."""

import tilelang.language as T


@T.prim_func
def halves(A: T.Tensor((128, 96), "float32"), B: T.Tensor((128, 96), "float32")):
    with T.Kernel(1, threads=256):
        top = T.alloc_shared((64, 96), "float32")
        bottom = T.alloc_shared((64, 96), "float32")
        with T.ws(0):
            T.copy(A[0:64, :], top)
            T.tma_copy(top, B[0:64, :])
            T.tma_store_arrive()
            T.tma_store_wait(0)
        with T.ws(1):
            T.copy(A[64:128, :], bottom)
            T.tma_copy(bottom, B[64:128, :])
            T.tma_store_arrive()
            T.tma_store_wait(0, read=False)
