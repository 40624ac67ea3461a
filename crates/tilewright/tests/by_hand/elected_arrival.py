"""One thread arrives for the tile, beside gemms of warps."""

import tilelang.language as T


@T.prim_func
def small(A: T.Tensor((32, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((32, 64), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        a = T.alloc_shared((32, 96), "float16")
        b = T.alloc_shared((96, 64), "float16")
        c = T.alloc_fragment((32, 64), "float32")
        full = T.alloc_barrier(1)
        T.tma_copy(A, a, barrier=full)
        T.tma_copy(B, b, barrier=full)
        if tx == 0:
            T.mbarrier_arrive(full)
        T.mbarrier_wait_parity(full, 0)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, C)
