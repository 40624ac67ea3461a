"""Settings of passes, by enumeration, by name, and ones that mean nothing here."""

import numpy as np
import tilelang
import tilelang.language as T

SETTINGS = [
    {tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True},
    {"tl.disable_warp_specialized": True, "tl.disable_tma_lower": True},
    {tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True},
    None,
]


def build(settings):
    @tilelang.jit(out_idx=[1], pass_configs=settings)
    def sigmoid(N):
        @T.prim_func
        def kernel(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, 64), threads=64) as b:
                for i in T.Parallel(64):
                    Y[b * 64 + i] = 1.0 / (1.0 + T.exp(-X[b * 64 + i]))

        return kernel

    return sigmoid


x = np.linspace(-4, 4, 200, dtype=np.float32)
for settings in SETTINGS:
    np.testing.assert_allclose(build(settings)(200)(x), 1 / (1 + np.exp(-x)), rtol=1e-5)
print("all close")
