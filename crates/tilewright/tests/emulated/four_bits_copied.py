"""Tiles of four-bit elements that waves copy straight to LDS, where the machine does: two of them share a byte."""

import tilelang.language as T


@T.prim_func
def main(
    A: T.Tensor((64, 256), "int4"),
    B: T.Tensor((64, 256), "float4_e2m1fn"),
    O: T.Tensor((64, 256), "int32"),
    P: T.Tensor((64, 256), "float32"),
):
    with T.Kernel(2, threads=128) as bx:
        a = T.alloc_shared((32, 128), "int4")
        b = T.alloc_shared((32, 128), "float4_e2m1fn")
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[bx * 32, k * 128], a)
            T.copy(B[bx * 32, k * 128], b)
            for i, j in T.Parallel(32, 128):
                O[bx * 32 + i, k * 128 + j] = a[i, 127 - j]
                P[bx * 32 + i, k * 128 + j] = b[31 - i, j]
