"""A loop whose number of turns the compiler finds: it is no loop in the compiled code."""

import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((128,), "int32"), O: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=128) as bx:
        tx = T.get_thread_binding(0)
        s = T.alloc_shared((128,), "int32")
        w = T.alloc_var("int32", 64)
        s[tx] = A[tx]
        T.sync_threads()
        while w > 0:
            if tx < w:
                s[tx] = s[tx] + s[tx + w]
            T.sync_threads()
            w = w // 2
        O[tx] = s[0]
