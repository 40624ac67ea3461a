# warns: not-pipelined
"""The user copies ahead: the tile is read, then overwritten (TileLang #2668)."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((5, 32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 32), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            T.copy(A[0, 0, 0], S)
            for k in T.Pipelined(4, num_stages=num_stages):
                for i, j in T.Parallel(32, 32):
                    acc[i, j] = acc[i, j] * 2 + S[j, i]
                T.copy(A[k + 1, 0, 0], S)
            T.copy(acc, C)
    return main
