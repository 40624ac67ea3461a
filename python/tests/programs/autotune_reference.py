"""Tuning with a reference program and supplied inputs: a configuration that is wrong loses."""

import numpy as np
import tilelang
import tilelang.language as T


def supply(params):
    return [np.linspace(-1, 1, 256, dtype=np.float32)]


@tilelang.autotune(
    configs=[dict(block=64, shift=1), dict(block=64, shift=0), dict(block=128, shift=0)],
    supply_prog=supply,
    ref_prog=lambda x: np.tanh(x),
    atol=1e-5,
    rtol=1e-5,
    max_mismatched_ratio=0,
)
@tilelang.jit(out_idx=[1])
def tanh(N=256, block=None, shift=None):
    @T.prim_func
    def kernel(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=64) as b:
            for i in T.Parallel(block):
                Y[b * block + i] = T.tanh(X[b * block + i]) + shift

    return kernel


kernel = tanh()
assert kernel.config["shift"] == 0
failed = [row for row in kernel.tuning.rows if row["failed"]]
assert [row["config"]["shift"] for row in failed] == [1]
print(kernel.tuning)
x = supply(None)[0]
np.testing.assert_allclose(kernel(x), np.tanh(x), rtol=1e-5)
print("all close")
