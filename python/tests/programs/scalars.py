"""Numbers as arguments of the call, and kernels that launch twice."""

import numpy as np
import tilelang
import tilelang.language as T


@T.prim_func
def twice(X: T.Tensor((64,), "float32"), n: T.int32, scale: T.float32, on: T.bool):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            if i < n and on:
                X[i] = X[i] * scale
    with T.Kernel(2, threads=32) as b:
        for i in T.Parallel(32):
            X[b * 32 + i] = X[b * 32 + i] + 1


kernel = tilelang.compile(twice)
x = np.ones(64, np.float32)
kernel(x, 10, 3.0, True)
np.testing.assert_array_equal(x, np.where(np.arange(64) < 10, 4, 2))
kernel(x, np.int32(64), np.float32(0), np.bool_(False))
np.testing.assert_array_equal(x, np.where(np.arange(64) < 10, 5, 3))
for bad in [(x, 1.5, 1.0, True), (x, 2**40, 1.0, True), (x, "1", 1.0, True)]:
    try:
        kernel(*bad)
    except (TypeError, ValueError) as e:
        assert "`n`" in str(e), e
    else:
        raise AssertionError(bad)
print("all close")
