# iota: steps=2
"""The place to copy from goes on by what memory says."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((6, 32, 32), "float32"), steps: T.Tensor((5,), "int32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 32), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            at = T.alloc_var("int32", 0)
            T.clear(acc)
            for k in T.Pipelined(5, num_stages=num_stages):
                at = at + steps[k]
                T.copy(A[at, 0, 0], S)
                for i, j in T.Parallel(32, 32):
                    acc[i, j] = acc[i, j] * 2 + S[j, i]
            T.copy(acc, C)
    return main
