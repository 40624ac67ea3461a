"""Configurations to choose from, by a list, by a function, and given by hand."""

import itertools

import numpy as np
import tilelang
import tilelang.language as T


def configs():
    sizes = itertools.product([16, 32], [32, 64])
    return [dict(block=block, threads=threads) for block, threads in sizes]


@tilelang.autotune(configs=configs(), warmup=3, rep=20)
@tilelang.jit(out_idx=[-1])
def add_one(N, block=None, threads=None):
    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=threads) as b:
            for i in T.Parallel(block):
                B[b * block + i] = A[b * block + i] + 1

    return kernel


@tilelang.autotune(configs=lambda N: [dict(block=N)])
@tilelang.jit(out_idx=[-1])
def whole(N, block=None):
    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=32) as b:
            for i in T.Parallel(block):
                B[b * block + i] = A[b * block + i] + 1

    return kernel


a = np.arange(100, dtype=np.float32)
np.testing.assert_array_equal(add_one(100)(a), a + 1)
assert "grid(b: 7)" in add_one(100).script()
assert "grid(b: 2)" in add_one(100, block=64, threads=64).script()
assert "grid(b: 1)" in whole(100).script()
np.testing.assert_array_equal(whole(100)(a), a + 1)
print("all close")
