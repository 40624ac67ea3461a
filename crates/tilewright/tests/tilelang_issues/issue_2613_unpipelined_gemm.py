"""TileLang #2613: a matrix product whose loop is not pipelined.

Split over producer and consumer warps with a single buffer, the producer overwrites a tile that the consumer
still multiplies. One buffer needs a barrier on both sides of the product.
"""

import tilelang
import tilelang.language as T


def kernel(M=64, N=64, K=160, block_K=32, threads=128, dtype="float16"):
    @T.prim_func
    def matmul(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=threads):
            a = T.alloc_shared((M, block_K), dtype)
            b = T.alloc_shared((block_K, N), dtype)
            c = T.alloc_fragment((M, N), "float32")

            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=0):
                T.copy(A[0, k * block_K], a)
                T.copy(B[k * block_K, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return matmul
