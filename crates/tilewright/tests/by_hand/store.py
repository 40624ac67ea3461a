"""Tiles go out by the copy engine, two at a time: a tile is written again when it has been read."""

import tilelang.language as T


@T.prim_func
def twice(A: T.Tensor((100, 256), "float32"), B: T.Tensor((100, 256), "float32")):
    with T.Kernel(2, threads=128) as bx:
        S = T.alloc_shared((2, 64, 64), "float32")
        for k in T.serial(4):
            T.tma_store_wait(1)
            for i, j in T.Parallel(64, 64):
                S[k % 2, i, j] = A[bx * 64 + i, k * 64 + j] * 2.0
            T.tma_copy(S[k % 2, :, :], B[bx * 64, k * 64])
            T.tma_store_arrive()
        T.tma_store_wait(0)
