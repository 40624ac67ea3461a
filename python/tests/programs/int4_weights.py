"""A product with weights of four bits: packed by numpy, unpacked in the kernel."""

import numpy as np
import tilelang
import tilelang.language as T


def pack(weights):
    low, high = weights[:, 0::2] + 8, weights[:, 1::2] + 8
    return (low | high << 4).astype(np.uint8)


@tilelang.jit(out_idx=[2])
def dequantized_matmul(M, N, K, block=32, step=32):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        W: T.Tensor((N, K // 2), "uint8"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=64) as (bx, by):
            a = T.alloc_shared((block, step), "float16")
            packed = T.alloc_shared((block, step // 2), "uint8")
            w = T.alloc_shared((block, step), "float16")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.serial(K // step):
                T.copy(A[by * block, k * step], a)
                T.copy(W[bx * block, k * step // 2], packed)
                for i, j in T.Parallel(block, step):
                    nibble = (T.cast(packed[i, j // 2], "int32") >> (4 * (j % 2))) & 15
                    w[i, j] = T.cast(nibble - 8, "float16")
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[by * block, bx * block])

    return main


rng = np.random.default_rng(0)
weights = rng.integers(-8, 8, (32, 64))
a = rng.integers(-2, 3, (32, 64)).astype(np.float16)
c = dequantized_matmul(32, 32, 64)(a, pack(weights))
np.testing.assert_array_equal(c, a.astype(np.float32) @ weights.T.astype(np.float32))
print("all close")
