"""Tensors that are views: strides are the kernel's business or an error."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def column_sums(N, M):
    s = T.dynamic("s")

    @T.prim_func
    def kernel(A: T.StridedTensor((N, M), (s, 1), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(1, threads=M):
            for j in T.Parallel(M):
                total = T.alloc_var("float32", init=0)
                for i in T.serial(N):
                    total += A[i, j]
                B[j] = total

    return kernel


wide = np.arange(64, dtype=np.float32).reshape(4, 16)
view = wide[:, :8]
sums = np.zeros(8, np.float32)
column_sums(4, 8)(view, sums)
np.testing.assert_array_equal(sums, view.sum(axis=0))


@tilelang.jit
def double(X):
    N, M = T.const("N, M")
    X: T.Tensor[[N, M], T.float32]
    with T.Kernel(1, threads=32):
        for i, j in T.Parallel(N, M):
            X[i, j] = X[i, j] * 2


try:
    double(view)
except ValueError as e:
    assert e.code == "arg-strides", e.code
    assert "`X`" in str(e)
else:
    raise AssertionError("a view was taken for a whole tensor")
whole = view.copy()
double(whole)
np.testing.assert_array_equal(whole, view * 2)
print("all close")
