"""TileLang #1105: a running maximum in a vectorized loop.

Eight elements are compared with the old maximum at once and written over each other, so that only one of them counts.
Iterations that meet in one place are not independent, and the loop has to run one element at a time.
"""

import tilelang
import tilelang.language as T


def kernel(M=64, N=40, threads=32):
    @T.prim_func
    def row_max(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M,), "int32")):
        with T.Kernel(M // threads, threads=threads) as bx:
            tx = T.get_thread_binding(0)
            largest = T.alloc_shared((threads,), "int32")

            largest[tx] = X[bx * threads + tx, 0]
            for i in T.serial(N // 8):
                for j in T.vectorized(8):
                    largest[tx] = T.max(largest[tx], X[bx * threads + tx, i * 8 + j])
            Y[bx * threads + tx] = largest[tx]

    return row_max
