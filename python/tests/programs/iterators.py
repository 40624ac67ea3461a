"""Kernels from generators, comprehensions, zip, enumerate and star arguments."""

import numpy as np
import tilelang
import tilelang.language as T


def shapes():
    yield from ((n, b) for n in (16, 40) for b in (8, 16) if n % b == 0)


def weighted(n, block, *weights, offset=0.0):
    count = len(weights)

    @T.prim_func
    def kernel(X: T.Tensor((count, n), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=32) as b:
            for i in T.Parallel(block):
                total = T.alloc_var("float32", init=offset)
                for row, weight in enumerate(weights):
                    total += X[row, b * block + i] * weight
                Y[b * block + i] = total

    return tilelang.compile(kernel, out_idx=[1])


for (n, block), offset in zip(shapes(), (0.0, 1.0, 2.0)):
    weights = [0.5 * k for k in range(1, 4)]
    x = np.arange(3 * n, dtype=np.float32).reshape(3, n)
    expected = np.tensordot(np.float32(weights), x, 1) + offset
    np.testing.assert_allclose(weighted(n, block, *weights, offset=offset)(x), expected)
print("all close")
