"""Several outputs, by `out_idx` and by `T.empty`."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1, 2])
def statistics(M, N):
    @T.prim_func
    def kernel(
        X: T.Tensor((M, N), "float32"),
        Sum: T.Tensor((M,), "float32"),
        Max: T.Tensor((M,), "float32"),
    ):
        with T.Kernel(M, threads=64) as row:
            x = T.alloc_fragment((1, N), "float32")
            total = T.alloc_fragment((1,), "float32")
            top = T.alloc_fragment((1,), "float32")
            T.copy(X[row : row + 1, :], x)
            T.reduce_sum(x, total, dim=1)
            T.reduce_max(x, top, dim=1)
            Sum[row] = total[0]
            Max[row] = top[0]

    return kernel


@tilelang.jit
def split(X):
    N = T.const("N")
    X: T.Tensor((N,), "float32")
    low = T.empty((N,), "float32")
    high = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, 32), threads=32) as b:
        for i in T.Parallel(32):
            low[b * 32 + i] = T.min(X[b * 32 + i], 0)
            high[b * 32 + i] = T.max(X[b * 32 + i], 0)
    return low, high


x = np.random.default_rng(0).integers(-9, 9, (4, 64)).astype(np.float32)
total, top = statistics(4, 64)(x)
np.testing.assert_array_equal(total, x.sum(axis=1))
np.testing.assert_array_equal(top, x.max(axis=1))
low, high = split(x[0])
np.testing.assert_array_equal(low, np.minimum(x[0], 0))
np.testing.assert_array_equal(high, np.maximum(x[0], 0))
print("all close")
