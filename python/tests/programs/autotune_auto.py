"""The tuner chooses what to try by the names of the parameters."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.autotune(configs="auto")
@tilelang.jit(out_idx=[-1])
def scale(M, N, block_M=None, enable_double=None):
    factor = 2 if enable_double else 1

    @T.prim_func
    def kernel(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=64) as b:
            for i, j in T.Parallel(block_M, N):
                B[b * block_M + i, j] = A[b * block_M + i, j] * 2 / factor * factor

    return kernel


kernel = scale(128, 8)
print(f"chosen of {len(kernel.tuning.rows)}: {kernel.config}")
a = np.arange(1024, dtype=np.float32).reshape(128, 8)
np.testing.assert_array_equal(kernel(a), a * 2)
assert len(kernel.tuning.rows) == 8
print("all close")
