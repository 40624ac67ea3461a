"""Settings from the environment, kernels behind functools.cache, types by name."""

import functools
import os

import numpy as np
import tilelang
import tilelang.language as T

os.environ.setdefault("PROGRAM_DTYPE", "float16")
DTYPE = os.environ["PROGRAM_DTYPE"]
ACCUMULATOR = {"float16": "float32", "int8": "int32"}[DTYPE]
BLOCK = int(os.getenv("PROGRAM_BLOCK", "32"))


@functools.cache
def dot(n):
    @T.prim_func
    def kernel(
        A: T.Tensor((n,), DTYPE), B: T.Tensor((n,), DTYPE), C: T.Tensor((1,), ACCUMULATOR)
    ):
        with T.Kernel(1, threads=BLOCK):
            products = T.alloc_fragment((n,), ACCUMULATOR)
            total = T.alloc_fragment((1,), ACCUMULATOR)
            for i in T.Parallel(n):
                products[i] = T.cast(A[i], ACCUMULATOR) * T.cast(B[i], ACCUMULATOR)
            T.reduce_sum(products, total, dim=0)
            T.copy(total, C)

    return tilelang.compile(kernel, out_idx=[2])


a = (np.arange(64) % 5).astype(DTYPE)
np.testing.assert_array_equal(dot(64)(a, a), [np.square(a.astype(int)).sum()])
assert dot(64) is dot(64) and dot.cache_info().hits == 2
print("all close")
