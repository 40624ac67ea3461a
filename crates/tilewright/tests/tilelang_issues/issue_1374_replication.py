"""TileLang #1374: a small fragment that each of its elements' readers needs a copy of.

A (16, 14) fragment scales a (16, 448) one, one value for 32 columns. No layout without copies serves both,
and inference finds no layout with them unless the row length is a multiple of the block.
"""

import tilelang
import tilelang.language as T


def kernel(M=16, N=448, group=32, threads=128, dtype="int32"):
    groups = N // group

    @T.prim_func
    def grouped(A: T.Tensor((M, groups), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((M, groups), dtype)
            b = T.alloc_fragment((M, N), dtype)

            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(M, N):
                b[i, j] = b[i, j] * a[i, j // group]
            T.copy(b, C)

    return grouped
