"""TileLang #2394: a vector broadcast over the rows of a tile whose width is not a power of two.

With a tile 24, 40, 48 or 96 columns wide the layout of the vector is computed with a replication
count that rounds down to zero, and the compiler dies of a division by zero.
"""

import tilelang
import tilelang.language as T


def kernel(M=32, N=48, threads=128, dtype="float32"):
    @T.prim_func
    def broadcast(D: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(1, threads=threads):
            d = T.alloc_fragment((N,), dtype)
            x = T.alloc_fragment((M, N), dtype)

            T.copy(D, d)
            for i, j in T.Parallel(M, N):
                x[i, j] = d[j] * 2.0
            T.copy(x, Y)

    return broadcast
