"""The package's own arithmetic: cdiv, next_power_of_2, ceildiv of the language."""

import numpy as np
import tilelang
import tilelang.language as T
from tilelang.math import next_power_of_2

N = 300
BLOCK = min(next_power_of_2(N), 128)
BLOCKS = tilelang.cdiv(N, BLOCK)


@tilelang.jit(out_idx=[-1])
def reverse(n, block, blocks):
    @T.prim_func
    def kernel(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(blocks, threads=block) as b:
            for i in T.Parallel(block):
                at = b * block + i
                if at < n:
                    B[n - 1 - at] = A[at]

    return kernel


assert (BLOCK, BLOCKS, T.ceildiv(N, BLOCK)) == (128, 3, 3)
a = np.arange(N, dtype=np.int32)
np.testing.assert_array_equal(reverse(N, BLOCK, BLOCKS)(a), a[::-1])
print("all close")
