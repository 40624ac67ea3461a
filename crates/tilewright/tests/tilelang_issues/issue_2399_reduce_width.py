"""TileLang #2399: a row sum over a width that does not divide the thread count.

The reduction's source and its result get layouts with different replication, and the compiler stops
with "Inconsistent layouts". Rows of 96, 100, 120 or 127 elements are what normalisations see every day.
"""

import tilelang
import tilelang.language as T


def kernel(M=4, N=96, threads=128, dtype="float32"):
    @T.prim_func
    def row_sum(X: T.Tensor((M, N), dtype), Y: T.Tensor((M,), dtype)):
        with T.Kernel(M, threads=threads) as bx:
            x = T.alloc_fragment((1, N), dtype)
            total = T.alloc_fragment((1,), dtype)

            T.copy(X[bx, 0], x)
            T.reduce_sum(x, total, dim=1)
            for i in T.Parallel(1):
                Y[bx + i] = total[i]

    return row_sum
