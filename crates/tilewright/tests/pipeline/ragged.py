"""Tiles reach past the end of the matrix."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((30, 75), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 16), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(75, 16), num_stages=num_stages):
                T.copy(A[0, k * 16], S)
                for i, j in T.Parallel(32, 32):
                    acc[i, j] = acc[i, j] * 2 + S[j, i // 2]
            T.copy(acc, C)
    return main
