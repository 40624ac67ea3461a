# run: first=3 last=3
# run: first=5 last=2
# run: first=2 last=3
# run: first=1 last=8
"""A loop that does not start at zero."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((8, 32, 32), "float32"), first: T.int32, last: T.int32, C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 32), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            for k in T.Pipelined(first, last, num_stages=num_stages):
                T.copy(A[k, 0, 0], S)
                for i, j in T.Parallel(32, 32):
                    acc[i, j] = acc[i, j] * 2 + S[j, i]
            T.copy(acc, C)
    return main
