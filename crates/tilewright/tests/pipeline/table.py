# iota: table=6
"""Where a tile is copied from is read from memory, and used by others too."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((6, 32, 32), "float32"), table: T.Tensor((8,), "int32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 32), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            for k in T.Pipelined(8, num_stages=num_stages):
                row = table[k]
                T.copy(A[row, 0, 0], S)
                for i, j in T.Parallel(32, 32):
                    acc[i, j] = acc[i, j] * 2 + S[j, i] * row
            T.copy(acc, C)
    return main
