"""As many blocks as the machine has multiprocessors, each taking one tile after another."""

import numpy as np
import tilelang
import tilelang.language as T
from tilelang.carver.arch import driver


def multiprocessors(default=4):
    try:
        return min(driver.get_num_sms(), default)
    except RuntimeError:
        return default


@tilelang.jit(out_idx=[-1])
def square(M, N, block, sms):
    tiles = T.ceildiv(M, block)

    @T.prim_func
    def kernel(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(sms, threads=64) as worker:
            tile = T.alloc_fragment((block, N), "float32")
            for turn in T.serial(T.ceildiv(tiles, sms)):
                at = turn * sms + worker
                if at < tiles:
                    T.copy(A[at * block, 0], tile)
                    for i, j in T.Parallel(block, N):
                        tile[i, j] = tile[i, j] * tile[i, j]
                    T.copy(tile, B[at * block, 0])

    return kernel


a = np.arange(160, dtype=np.float32).reshape(20, 8)
np.testing.assert_array_equal(square(20, 8, 2, multiprocessors())(a), a * a)
print("all close")
