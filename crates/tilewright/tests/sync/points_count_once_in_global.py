# Copies of a fragment's element read what one of them adds to in global memory.
import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((4, 32), "int32"), C: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=128) as bx:
        x = T.alloc_fragment((4, 32), "int32")
        f = T.alloc_fragment((4,), "int32")
        T.copy(A, x)
        T.reduce_sum(x, f, dim=1)
        for i in T.Parallel(4):
            C[i] = f[i]
        for i in T.Parallel(4):
            C[i] = C[i] + f[i]
