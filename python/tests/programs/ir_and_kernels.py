"""A program that looks at what it made: prim_funcs, their scripts, kernels by class and by repr."""

import numpy as np
import tilelang
import tilelang.language as T


def make(n):
    @T.prim_func
    def increment(A: T.Tensor((n,), "int64")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                A[i] += 1

    return increment


function = make(10)
assert isinstance(function, T.PrimFunc)
assert "func @increment" in function.script()
kernels = {n: tilelang.compile(make(n)) for n in (1, 10)}
for n, kernel in kernels.items():
    a = np.arange(n)
    kernel(a)
    np.testing.assert_array_equal(a, np.arange(n) + 1)
    assert kernel.params == ["A"] and f"int64[{n}]" in kernel.script()
again = tilelang.compile(kernels[1])
assert again is kernels[1]
print(sorted(repr(kernel) for kernel in kernels.values())[0])
print("all close")
