"""Sizes of types and targets, as programs ask tvm for them."""

import numpy as np
import tilelang
import tilelang.language as T
from tilelang import tvm

TARGET = tvm.target.Target("cuda -arch=sm_90a")


def vector_width(dtype):
    return 128 // tvm.DataType(dtype).bits


def copy_kernel(N, dtype):
    width = vector_width(dtype)

    @T.prim_func
    def kernel(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 32 * width), threads=32) as b:
            for i in T.Parallel(32 * width):
                B[b * 32 * width + i] = A[b * 32 * width + i]

    return tilelang.compile(kernel, out_idx=[1], target=TARGET)


for dtype in ("float32", "float16", "int8"):
    a = np.arange(2048).astype(dtype)
    np.testing.assert_array_equal(copy_kernel(2048, dtype)(a), a)
    print(dtype, vector_width(dtype))
print("all close")
