"""Single bytes are too narrow for an asynchronous copy."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((5, 32, 33), "int8"), C: T.Tensor((32, 33), "int32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 33), "int8")
            acc = T.alloc_fragment((32, 33), "int32")
            T.clear(acc)
            for k in T.Pipelined(5, num_stages=num_stages):
                T.copy(A[k, 0, 0], S)
                for i, j in T.Parallel(32, 33):
                    acc[i, j] = acc[i, j] * 2 + T.cast(S[31 - i, 32 - j], "int32")
            T.copy(acc, C)
    return main
