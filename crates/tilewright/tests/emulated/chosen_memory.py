"""A value of shared memory or of a tensor, by a condition of the thread: C chooses the place first,
so that one instruction reads from both memories."""

import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((2, 128), "float16"), B: T.Tensor((2, 128), "float16"), O: T.Tensor((2, 128), "float16")):
    with T.Kernel(2, threads=128) as bx:
        tx = T.get_thread_binding(0)
        s = T.alloc_shared((128,), "float16")
        T.copy(A[bx, 0], s)
        T.sync_threads()
        O[bx, tx] = T.if_then_else(B[bx, (tx * 5 + 1) % 128] < 5, s[127 - tx], B[bx, tx])
