"""TileLang #2699 and #2703: clearing shared memory is a write like any other.

On targets where a clear becomes a bulk store it is not seen as a write, and neither the barrier before it
(others may still read) nor the one after it (others are about to) is placed.
"""

import tilelang
import tilelang.language as T


def kernel(M=3, N=100, threads=128, dtype="float32"):
    @T.prim_func
    def shift(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(1, threads=threads):
            row = T.alloc_shared((N + 1,), dtype)

            for k in T.serial(M):
                T.clear(row)
                for j in T.Parallel(N - 1):
                    row[j + 1] = X[k, j]
                for j in T.Parallel(N):
                    Y[k, N - 1 - j] = row[N - 1 - j] + row[N - j]

    return shift
