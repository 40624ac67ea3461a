"""The user's lists speak of two statements; the variable's initial value is none."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((6, 32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 32), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            for k in T.Pipelined(6, num_stages=num_stages, order=[0, 1], stage=[0, 1]):
                T.copy(A[k, 0, 0], S)
                w = T.alloc_var("int32", k + 1)
                for i, j in T.Parallel(32, 32):
                    acc[i, j] = acc[i, j] + S[j, i] * w
            T.copy(acc, C)
    return main
