"""No warp groups: the block has tiles brought one after another. The compiler puts in the barriers
between what threads read and the next tile."""

import tilelang.language as T


@T.prim_func
def scale(A: T.Tensor((3, 100, 256), "float32"), B: T.Tensor((100, 256), "float32")):
    with T.Kernel(4, threads=128) as bx:
        S = T.alloc_shared((64, 64), "float32")
        line = T.alloc_shared((64,), "float32")
        acc = T.alloc_fragment((64, 64), "float32")
        bar = T.alloc_barrier(128)
        for half in T.serial(2):
            T.clear(acc)
            for k in T.serial(3):
                T.tma_copy(A[k, half * 64, bx * 64], S, barrier=bar)
                T.tma_copy(A[k, 0, bx * 64], line, barrier=bar)
                T.mbarrier_arrive(bar)
                T.mbarrier_wait_parity(bar, (half * 3 + k) % 2)
                for i, j in T.Parallel(64, 64):
                    acc[i, j] = acc[i, j] + S[i, j] * line[j]
            T.copy(acc, B[half * 64, bx * 64])
