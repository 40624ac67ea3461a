"""A copy to LDS whose place is read from a lane just before it."""

import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 192), "float16"), B: T.Tensor((192, 64), "uint8"), O: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "uint8")
        h = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(6, num_stages=1):
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            for i, j in T.Parallel(32, 64):
                h[i, j] = T.cast(b[i, j], "float16") - 8
            T.gemm(a, h, c)
        T.copy(c, O)
