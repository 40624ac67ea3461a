"""Threads of a block hand values to each other through a tensor. No wave waits for its stores."""
# without 1: s_barrier -> race

import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((2, 256), "int32"), B: T.Tensor((2, 256), "int32"), O: T.Tensor((2, 256), "int32")):
    with T.Kernel(2, threads=256) as bx:
        tx = T.get_thread_binding(0)
        B[bx, tx] = A[bx, tx] + 1
        T.sync_threads()
        O[bx, tx] = B[bx, 255 - tx]
