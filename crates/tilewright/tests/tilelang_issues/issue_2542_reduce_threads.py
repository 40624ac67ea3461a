"""TileLang #2542: a reduction over 48 threads.

The exchange between lanes halves its distance and is right for powers of two only: of 48 threads the last 16
are dropped, and the sum of 1 to 48 comes out as 528 instead of 1176.
"""

import tilelang
import tilelang.language as T


def kernel(N=48, threads=48, dtype="float32"):
    @T.prim_func
    def total(X: T.Tensor((N,), dtype), S: T.Tensor((1,), dtype), L: T.Tensor((1,), dtype)):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((N,), dtype)
            s = T.alloc_fragment((1,), dtype)
            largest = T.alloc_fragment((1,), dtype)

            T.copy(X, x)
            T.reduce_sum(x, s, dim=0)
            T.reduce_max(x, largest, dim=0)
            T.copy(s, S)
            T.copy(largest, L)

    return total
