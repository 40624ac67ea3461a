"""Names of the language by themselves, other names for the package, a factory of factories."""

import numpy as np
import tilelang as tl
from tilelang import jit as compiled
from tilelang.language import Kernel, Parallel, Tensor, alloc_fragment, copy, float32, prim_func
from tilelang.layout import make_swizzled_layout
from tilelang.math import next_power_of_2


@compiled(out_idx=[-1])
def negate(n):
    def build(block):
        @prim_func
        def kernel(A: Tensor((n,), float32), B: Tensor((n,), float32)):
            with Kernel(tl.cdiv(n, block), threads=block) as b:
                x = alloc_fragment((block,), float32)
                copy(A[b * block : (b + 1) * block], x)
                for i in Parallel(block):
                    x[i] = -x[i]
                copy(x, B[b * block])

        return kernel

    return build(next_power_of_2(n) // 2)


assert callable(make_swizzled_layout)
a = np.arange(100, dtype=np.float32)
np.testing.assert_array_equal(negate(100)(a), -a)
assert tl.__name__ == "tilewright" and tl.language.float16.bits == 16
print("all close")
