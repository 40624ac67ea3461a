"""The first iteration is left out in every block."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((6, 32, 32), "float32"), C: T.Tensor((3, 32, 32), "float32")):
        with T.Kernel(3, threads=128) as bx:
            S = T.alloc_shared((32, 32), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            for k in T.Pipelined(6, num_stages=num_stages):
                if k > bx:
                    T.copy(A[k, 0, 0], S)
                    for i, j in T.Parallel(32, 32):
                        acc[i, j] = acc[i, j] * 2 + S[j, i]
            T.copy(acc, C[bx, :, :])
    return main
