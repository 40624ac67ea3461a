"""The same factory for several targets; each compiled, one of them simulated."""

import numpy as np
import tilelang
import tilelang.language as T


def make(target):
    @tilelang.jit(out_idx=-1, target=target, execution_backend="cython")
    def add_row(M, N):
        @T.prim_func
        def kernel(A: T.Tensor((M, N), "float32"), b: T.Tensor((N,), "float32"), C: T.Tensor((M, N), "float32")):
            with T.Kernel(M, threads=64) as row:
                for j in T.Parallel(N):
                    C[row, j] = A[row, j] + b[j]

        return kernel

    return add_row(3, 64)


a, b = np.ones((3, 64), np.float32), np.arange(64, dtype=np.float32)
sources = set()
for target in ("auto", "cuda", "hip", {"kind": "cuda", "arch": "sm_80"}, "sim:gfx942"):
    kernel = make(target)
    np.testing.assert_array_equal(kernel(a, b), a + b)
    sources.add(kernel.get_kernel_source())
assert len(sources) >= 3
try:
    make("pdp-11")
except ValueError as error:
    assert "pdp-11" in str(error)
print("all close")
