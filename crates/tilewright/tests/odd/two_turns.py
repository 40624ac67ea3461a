"""A version of a tile in a loop of two turns: its counter is in a vector register."""

import tilelang.language as T


d0 = T.dynamic("d0")
@T.prim_func
def main(A: T.Tensor((20, d0), "int8"), B: T.Tensor((16, 256), "int8"), S: T.Tensor((6,), "int32"), O: T.Tensor((17, 16), "int32")):
    with T.Kernel(3, 2, threads=128) as (bx, by):
        t = T.alloc_shared((7, 7), "int32")
        T.fill(t, 3)
        for i, j in T.Parallel(6, 3):
            T.atomic_min(S[(i + 3) % 6], (t[j, j] % 7) - 3)
        a = T.alloc_shared((17, 64), "int8")
        b = T.alloc_shared((16, 64), "int8")
        c = T.alloc_fragment((17, 16), "int32")
        T.clear(c)
        T.copy(B[0, 0], b)
        for k in T.Pipelined(4, num_stages=3):
            T.copy(A[bx * 8, k * 8], a)
            T.gemm(a, b, c, transpose_B=True)
        if by == 0:
            if bx == 0:
                T.copy(c, O)
