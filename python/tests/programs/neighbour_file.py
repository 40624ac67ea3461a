"""Macros and functions of a neighbouring file; their own names are theirs."""

import numpy as np
import tilelang
import tilelang.language as T
from shared_code import macros
from shared_code.macros import load_row, polynomial

SCALE = 1000.0  # Not the one that the macro means.


@tilelang.jit(out_idx=-1)
def rows(M, N):
    @T.prim_func
    def kernel(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=64) as row:
            x = T.alloc_fragment((N,), "float32")
            shared = T.alloc_shared((N,), "float32")
            load_row(A, x, row, N)
            macros.scale(x)
            c0, c1 = macros.gelu_constants()
            for j in T.Parallel(N):
                shared[j] = polynomial(x[j], (2, 3, 4)) + macros.polynomial(2, [1, 1]) + c1 - c1
            macros.barrier_between()
            for j in T.Parallel(N):
                B[row, j] = shared[N - 1 - j]

    return kernel


a = np.arange(12, dtype=np.float32).reshape(3, 4)
h = a * 0.5
np.testing.assert_allclose(rows(3, 4)(a), ((2 * h + 3) * h + 4 + 3)[:, ::-1], rtol=1e-6)
print("all close")
