"""The same kernel on the reference evaluator and in simulators of machines."""

import numpy as np
import tilelang
import tilelang.language as T


def softmax(M, N, target):
    @tilelang.jit(out_idx=[-1], target=target, pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
    def factory():
        @T.prim_func
        def kernel(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
            with T.Kernel(M, threads=64) as row:
                x = T.alloc_fragment((1, N), "float32")
                top = T.alloc_fragment((1,), "float32")
                total = T.alloc_fragment((1,), "float32")
                T.copy(X[row : row + 1, :], x)
                T.reduce_max(x, top, dim=1)
                for i, j in T.Parallel(1, N):
                    x[i, j] = T.exp(x[i, j] - top[i])
                T.reduce_sum(x, total, dim=1)
                for i, j in T.Parallel(1, N):
                    x[i, j] = x[i, j] / total[i]
                T.copy(x, Y[row : row + 1, :])

        return kernel

    return factory()


x = np.random.default_rng(0).standard_normal((2, 128), dtype=np.float32)
e = np.exp(x - x.max(axis=1, keepdims=True))
expected = e / e.sum(axis=1, keepdims=True)
for target in ["auto", "sim:gfx950", "sim:sm_80", "sim:cuda"]:
    np.testing.assert_allclose(softmax(2, 128, target)(x), expected, rtol=1e-5)
assert "hip" in str(softmax(2, 128, "hip").get_kernel_source()).lower()
print("all close")
