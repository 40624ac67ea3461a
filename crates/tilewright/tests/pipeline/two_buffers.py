"""Two tiles of different shapes feed a gemm."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((32, 160), "float16"), B: T.Tensor((160, 64), "float16"), C: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared((32, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            acc = T.alloc_fragment((32, 64), "float32")
            T.clear(acc)
            for k in T.Pipelined(5, num_stages=num_stages):
                T.copy(A[0, k * 32], A_shared)
                T.copy(B[k * 32, 0], B_shared)
                T.gemm(A_shared, B_shared, acc)
            T.copy(acc, C)
    return main
