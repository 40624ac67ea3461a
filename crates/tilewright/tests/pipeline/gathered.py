# iota: index=16
"""Rows are gathered by indices that are copied to shared memory first."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((16, 32), "float32"), index: T.Tensor((4, 32), "int32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            rows = T.alloc_shared((32,), "int32")
            S = T.alloc_shared((32, 32), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            for k in T.Pipelined(4, num_stages=num_stages):
                T.copy(index[k, 0], rows)
                for i, j in T.Parallel(32, 32):
                    S[i, j] = A[rows[i], j]
                for i, j in T.Parallel(32, 32):
                    acc[i, j] = acc[i, j] * 2 + S[j, i]
            T.copy(acc, C)
    return main
