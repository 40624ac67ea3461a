"""A product of two formats of six bits with scales, in a pipelined loop: operands of 24 bytes a lane, where the machine multiplies
them, from tiles that waves copy 12 bytes a lane; elsewhere elements are converted on the way."""

import tilelang.language as T


@T.prim_func
def main(
    A: T.Tensor((64, 384), "float6_e2m3fn"),
    B: T.Tensor((64, 384), "float6_e3m2fn"),
    SA: T.Tensor((64, 12), "float8_e8m0fnu"),
    SB: T.Tensor((64, 12), "float8_e8m0fnu"),
    C: T.Tensor((64, 64), "float32"),
):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared((64, 128), "float6_e2m3fn")
        b = T.alloc_shared((64, 128), "float6_e3m2fn")
        sa = T.alloc_shared((64, 4), "float8_e8m0fnu")
        sb = T.alloc_shared((64, 4), "float8_e8m0fnu")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=2):
            T.copy(A[0, k * 128], a)
            T.copy(B[0, k * 128], b)
            T.copy(SA[0, k * 4], sa)
            T.copy(SB[0, k * 4], sb)
            T.gemm_blockscaled(a, b, c, sa, sb, transpose_B=True)
        T.copy(c, C)
