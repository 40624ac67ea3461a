"""TileLang #2398: a fragment wider than the block, whose width is no multiple of the thread count.

Layout inference there ends with "no available layout found" for 192, 229 or 257 elements on 128
threads, because it only looks for layouts in which every thread holds equally many. The last round of
such a loop simply leaves some threads without an element.
"""

import tilelang
import tilelang.language as T


def kernel(M=3, N=229, threads=128, dtype="float32"):
    @T.prim_func
    def scale(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=threads) as bx:
            x = T.alloc_fragment((1, N), dtype)

            T.copy(X[bx, 0], x)
            for i, j in T.Parallel(1, N):
                x[i, j] = x[i, j] * 2.0 + 1.0
            T.copy(x, Y[bx, 0])

    return scale
