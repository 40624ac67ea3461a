"""TileLang #2955: a table lookup by column modulo a size that does not divide the width.

The two loops are fused and `(i * 64 + j) % 64 % 7` is simplified as if 7 divided 64: every row but the first reads
the wrong entry.
"""

import tilelang
import tilelang.language as T


def kernel(M=16, N=64, K=7, threads=128, dtype="int32"):
    @T.prim_func
    def lookup(A: T.Tensor((M, N), dtype), B: T.Tensor((K,), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(1, threads=threads):
            for i, j in T.Parallel(M, N):
                C[i, j] = A[i, j] + B[j % K]

    return lookup
