"""Sizes of the call: one kernel for all of them."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2])
def add(dtype="float32", block=64):
    m, n = T.dynamic("m, n")
    tiles = T.ceildiv(n, block)

    @T.prim_func
    def kernel(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype), C: T.Tensor((m, n), dtype)):
        with T.Kernel(tiles, m, threads=block) as (bx, row):
            for j in T.Parallel(block):
                C[row, bx * block + j] = A[row, bx * block + j] + B[row, bx * block + j]

    return kernel


kernel = add()
for shape in [(3, 70), (1, 64), (5, 1)]:
    a = np.random.default_rng(0).random(shape, dtype=np.float32)
    b = np.random.default_rng(1).random(shape, dtype=np.float32)
    np.testing.assert_array_equal(kernel(a, b), a + b)
try:
    kernel(np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32))
except ValueError as e:
    assert e.code == "symbol-conflict", e.code
    assert "`n`" in str(e)
else:
    raise AssertionError("sizes that contradict each other")
print("all close")
