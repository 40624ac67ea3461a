"""The use writes a shared tile of its own."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((32, 128), "float16"), B: T.Tensor((32, 64), "uint8"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared((32, 32), "float16")
            packed = T.alloc_shared((32, 16), "uint8")
            B_shared = T.alloc_shared((32, 32), "float16")
            acc = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            for k in T.Pipelined(4, num_stages=num_stages):
                T.copy(A[0, k * 32], A_shared)
                T.copy(B[0, k * 16], packed)
                for i, j in T.Parallel(32, 32):
                    B_shared[i, j] = T.cast((T.cast(packed[i, j // 2], "int32") >> ((j % 2) * 4)) & 0xF, "float16")
                T.gemm(A_shared, B_shared, acc, transpose_B=True)
            T.copy(acc, C)
    return main
