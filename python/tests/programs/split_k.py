"""A product split along K, whose parts are added atomically to an output of the caller's."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def matmul_split(M, N, K, block=32, splits=4):
    part = K // splits

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), splits, threads=64) as (bx, by, bz):
            a = T.alloc_shared((block, 16), "float16")
            b = T.alloc_shared((block, 16), "float16")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(part // 16, num_stages=2):
                T.copy(A[by * block, bz * part + k * 16], a)
                T.copy(B[bx * block, bz * part + k * 16], b)
                T.gemm(a, b, c, transpose_B=True)
            for i, j in T.Parallel(block, block):
                T.atomic_add(C[by * block + i, bx * block + j], c[i, j])

    return main


rng = np.random.default_rng(0)
a = rng.integers(-2, 3, (32, 128)).astype(np.float16)
b = rng.integers(-2, 3, (64, 128)).astype(np.float16)
c = np.zeros((32, 64), np.float32)
assert matmul_split(32, 64, 128)(a, b, c) is None
expected = a.astype(np.float32) @ b.astype(np.float32).T
np.testing.assert_array_equal(c, expected)
matmul_split(32, 64, 128)(a, b, c)
np.testing.assert_array_equal(c, 2 * expected)
print("all close")
