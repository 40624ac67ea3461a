"""TileLang #2883: a tile with more points than the prover's budget.

Past 262,144 points, or when the solver runs into its resource limit, a layout that is perfectly fine is
refused with a message about something else. Layouts in closed form are decided whatever their size.
"""

import tilelang
import tilelang.language as T


def kernel(M=520, N=513, threads=256, dtype="int8"):
    @T.prim_func
    def negate(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(1, threads=threads):
            for i, j in T.Parallel(M, N):
                Y[i, j] = -X[i, j]

    return negate
