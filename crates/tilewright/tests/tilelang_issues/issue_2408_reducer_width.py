"""TileLang #2408: a reducer fed by a tile whose width does not divide the thread count.

The threads that are left over repeat the work of others, and since every thread's part is added up, the result is a
multiple of the right one.
"""

import tilelang
import tilelang.language as T


def kernel(M=8, N=96, block_N=48, threads=128, dtype="float32"):
    @T.prim_func
    def matvec(A: T.Tensor((M, N), dtype), X: T.Tensor((N,), dtype), Y: T.Tensor((M,), dtype)):
        with T.Kernel(1, threads=threads):
            y = T.alloc_reducer((M,), dtype, op="sum", replication="all")

            T.clear(y)
            for k in T.serial(T.ceildiv(N, block_N)):
                for i, j in T.Parallel(M, block_N):
                    y[i] += A[i, k * block_N + j] * X[k * block_N + j]
            T.finalize_reducer(y)
            for i in T.Parallel(M):
                Y[i] = y[i]

    return matvec
