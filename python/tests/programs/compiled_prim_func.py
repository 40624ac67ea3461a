"""A kernel at module level, compiled by a call; its output is one of its arguments."""

import numpy as np
import tilelang
from tilelang import language as T

N = 1000
BLOCK = 128


@T.prim_func
def axpy(
    X: T.Tensor((N,), "float32"),
    Y: T.Tensor((N,), "float32"),
    alpha: T.float32,
):
    with T.Kernel(T.ceildiv(N, BLOCK), threads=BLOCK) as bx:
        for i in T.Parallel(BLOCK):
            Y[bx * BLOCK + i] = alpha * X[bx * BLOCK + i] + Y[bx * BLOCK + i]


kernel = tilelang.compile(axpy)
x = np.arange(N, dtype=np.float32)
y = np.ones(N, dtype=np.float32)
assert kernel(x, y, 2.0) is None
np.testing.assert_array_equal(y, 2 * x + 1)
kernel(X=x, alpha=-2, Y=y)
np.testing.assert_array_equal(y, np.ones(N))
print("all close")
