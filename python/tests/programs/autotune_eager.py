"""An eager kernel with tuned parameters, called with arrays of several sizes."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.autotune(configs=[dict(block=32, threads=32), dict(block=128, threads=64)])
@tilelang.jit
def saxpy(X, Y, alpha: float = 1.0, block: int = 64, threads: int = 64):
    N = T.const("N")
    X: T.Tensor[[N], T.float32]
    Y: T.Tensor[[N], T.float32]
    Z = T.empty([N], T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=threads) as b:
        for i in T.Parallel(block):
            Z[b * block + i] = alpha * X[b * block + i] + Y[b * block + i]
    return Z


for n in (10, 100, 1000):
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    for alpha in (1.0, 0.5):
        np.testing.assert_allclose(saxpy(x, y, alpha), alpha * x + y)
    np.testing.assert_allclose(saxpy(x, y, alpha=2.0, block=16, threads=32), 2 * x + y)
print("all close")
