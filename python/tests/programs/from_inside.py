"""A program that asks for the alias itself, and strings as annotations of scalars."""

import tilewright

tilewright.as_tilelang()

import numpy as np  # noqa: E402
import tilelang  # noqa: E402
import tilelang.language as T  # noqa: E402

assert tilelang is tilewright


@tilelang.jit
def clamp(X, low: float = 0.0, high: float = 1.0):
    N = T.const("N")
    X: T.Tensor[[N], T.float32]
    Y = T.empty([N], T.float32)
    with T.Kernel(T.ceildiv(N, 32), threads=32) as b:
        for i in T.Parallel(32):
            Y[b * 32 + i] = T.clamp(X[b * 32 + i], low, high)
    return Y


x = np.linspace(-2, 2, 50, dtype=np.float32)
np.testing.assert_array_equal(clamp(x), np.clip(x, 0, 1))
np.testing.assert_array_equal(clamp(x, high=0.5, low=-0.5), np.clip(x, -0.5, 0.5))
print("all close")
