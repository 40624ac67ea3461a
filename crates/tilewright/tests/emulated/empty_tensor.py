# with n=0
"""A loop over the rows of a tensor that has none: nothing is read, though the compiler would like to hear
that loops run. A row that is not there is zeros, and conditions on it are asked."""

import tilelang.language as T

n = T.dynamic("n")


@T.prim_func
def main(A: T.Tensor((n, 64), "float32"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        tx = T.get_thread_binding(0)
        total = T.alloc_local((1,), "float32")
        total[0] = 1.0
        for k in T.serial(n):
            total[0] += A[k, tx]
        if n > 0:
            total[0] += 2.0
        total[0] += A[0, tx]
        O[tx] = total[0]
