# run: n=0
# run: n=1
# run: n=2
# run: n=3
# run: n=7
"""A loop that runs as often as an argument says, none included."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((8, 32, 32), "float32"), n: T.int32, C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 32), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            for k in T.Pipelined(n, num_stages=num_stages):
                T.copy(A[k, 0, 0], S)
                for i, j in T.Parallel(32, 32):
                    acc[i, j] = acc[i, j] * 2 + S[j, i]
            T.copy(acc, C)
    return main
