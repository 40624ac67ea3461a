"""A value read from the tile is named."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((5, 32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 32), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            for k in T.Pipelined(5, num_stages=num_stages):
                T.copy(A[k, 0, 0], S)
                corner = S[3, 5]
                for i, j in T.Parallel(32, 32):
                    acc[i, j] = acc[i, j] * 2 + corner * S[j, i]
            T.copy(acc, C)
    return main
