"""An index by arithmetic on halves of registers, under a condition, so that the upper half of the
register holds something else before."""

import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((2, 93), "bfloat16"), O: T.Tensor((2, 64), "float32")):
    with T.Kernel(2, threads=64) as bx:
        tx = T.get_thread_binding(0)
        s = T.alloc_shared((31, 3), "bfloat16")
        for i, j in T.Parallel(31, 3):
            s[i, j] = A[bx, i * 3 + j]
        T.sync_threads()
        O[bx, tx] = T.if_then_else(s[tx % 31, tx % 3] <= 5, s[(tx * 5 + 2) % 31, bx], T.bfloat16(-5))
