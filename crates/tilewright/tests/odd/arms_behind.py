"""Arms of conditions that the compiler lays out behind the loop they belong to."""

import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((9, 130), "float32"), O: T.Tensor((130,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        s = T.alloc_shared((130,), "float32")
        f = T.alloc_fragment((130,), "float32")
        T.clear(f)
        for k in T.Pipelined(9, num_stages=2):
            T.copy(A[k, 0], s)
            for i in T.Parallel(130):
                f[i] = f[i] + s[129 - i]
        T.copy(f, O)
