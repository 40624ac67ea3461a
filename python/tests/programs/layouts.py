"""Layouts written by hand: a swizzled tile, rasterised blocks."""

import numpy as np
import tilelang
import tilelang.language as T
from tilelang.layout import make_swizzled_layout


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block=64):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            a = T.alloc_shared((block, 32), "float16")
            b = T.alloc_shared((32, block), "float16")
            c = T.alloc_fragment((block, block), "float32")
            T.annotate_layout({a: make_swizzled_layout(a), b: make_swizzled_layout(b)})
            T.use_swizzle(panel_size=4, enable=True)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * block, k * 32], a)
                T.copy(B[k * 32, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    return main


rng = np.random.default_rng(3)
a = rng.integers(-2, 3, (64, 64)).astype(np.float16)
b = rng.integers(-2, 3, (64, 64)).astype(np.float16)
np.testing.assert_array_equal(matmul(64, 64, 64)(a, b), (a.astype(int) @ b.astype(int)).astype(np.float16))
print("all close")
