"""A loop that starts with a barrier and ends with a write to shared memory."""

import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((130,), "float32"), O: T.Tensor((130,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((130,), "float32")
        t = T.alloc_shared((130,), "float32")
        T.copy(A, s)
        for k in range(7):
            for i in T.Parallel(128):
                t[i + 1] = (s[i] + s[i + 1] + s[i + 2]) / 3
            for i in T.Parallel(128):
                s[i + 1] = t[i + 1]
        T.copy(s, O)
