"""Rows gathered and scattered by index tensors, as routers of experts do it."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2])
def gather(rows, picked, width, dtype="float32"):
    @T.prim_func
    def kernel(
        X: T.Tensor((rows, width), dtype), index: T.Tensor((picked,), "int32"), Y: T.Tensor((picked, width), dtype)
    ):
        with T.Kernel(picked, threads=32) as r:
            for j in T.Parallel(width):
                Y[r, j] = X[index[r], j]

    return kernel


@tilelang.jit
def scatter_add(rows, picked, width, dtype="float32"):
    @T.prim_func
    def kernel(
        Y: T.Tensor((picked, width), dtype), index: T.Tensor((picked,), "int32"), X: T.Tensor((rows, width), dtype)
    ):
        with T.Kernel(picked, threads=32) as r:
            for j in T.Parallel(width):
                T.atomic_add(X[index[r], j], Y[r, j])

    return kernel


rng = np.random.default_rng(0)
x = rng.integers(-3, 4, (10, 16)).astype(np.float32)
index = rng.integers(0, 10, 24).astype(np.int32)
picked = gather(10, 24, 16)(x, index)
np.testing.assert_array_equal(picked, x[index])
total = np.zeros_like(x)
scatter_add(10, 24, 16)(picked, index, total)
expected = np.zeros_like(x)
np.add.at(expected, index, x[index])
np.testing.assert_array_equal(total, expected)
print("all close")
