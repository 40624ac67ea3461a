"""Tiles of six-bit elements: whole rows that waves copy straight to LDS, 12 bytes a lane, where the machine does; parts of
odd tensors, whose rows end inside of bytes; through registers, and out again."""

import tilelang.language as T


@T.prim_func
def main(
    A: T.Tensor((64, 256), "float6_e2m3fn"),
    B: T.Tensor((37, 51), "float6_e3m2fn"),
    D: T.Tensor((40, 48), "float6_e3m2fn"),
    O: T.Tensor((64, 256), "float32"),
    P: T.Tensor((37, 51), "float6_e3m2fn"),
    Q: T.Tensor((37, 51), "float32"),
    R: T.Tensor((40, 48), "float6_e3m2fn"),
    S: T.Tensor((40, 48), "float6_e2m3fn"),
):
    with T.Kernel(2, threads=128) as bx:
        a = T.alloc_shared((32, 128), "float6_e2m3fn")
        b = T.alloc_shared((20, 32), "float6_e3m2fn")
        d = T.alloc_fragment((20, 48), "float6_e3m2fn")
        e = T.alloc_shared((20, 48), "float6_e3m2fn")
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[bx * 32, k * 128], a)
            T.copy(B[bx * 20, k * 32], b)
            for i, j in T.Parallel(32, 128):
                O[bx * 32 + i, k * 128 + j] = a[i, 127 - j]
            T.copy(b, P[bx * 20, k * 32])
            for i, j in T.Parallel(20, 32):
                if bx * 20 + i < 37 and k * 32 + j < 51:
                    Q[bx * 20 + i, k * 32 + j] = b[i, j] * 2.0
        T.copy(D[bx * 20, 0], d)
        T.copy(d, e)
        T.copy(e, R[bx * 20, 0])
        for i, j in T.Parallel(20, 48):
            S[bx * 20 + i, j] = d[i, j] * 0.5
