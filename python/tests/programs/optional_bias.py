"""An argument that may be None: the kernel does not touch it then."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def scale_and_shift(n, has_bias):
    @T.prim_func
    def kernel(X: T.Tensor((n,), "float32"), bias: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as b:
            for i in T.Parallel(64):
                at = b * 64 + i
                if has_bias:
                    Y[at] = X[at] * 2 + bias[at]
                else:
                    Y[at] = X[at] * 2

    return kernel


def run(x, bias=None):
    return scale_and_shift(len(x), bias is not None)(x, bias)


x = np.arange(100, dtype=np.float32)
np.testing.assert_array_equal(run(x), x * 2)
np.testing.assert_array_equal(run(x, x), x * 3)
try:
    scale_and_shift(100, True)(x, None)
except RuntimeError as error:
    print("refused:", str(error).splitlines()[0])
else:
    raise SystemExit("a null tensor was read")
print("all close")
