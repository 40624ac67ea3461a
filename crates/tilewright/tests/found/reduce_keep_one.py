# A reduction that adds to one element.
import tilelang.language as T


@T.prim_func
def main(A0: T.Tensor((1, 1), "int32")):
    with T.Kernel(1, threads=32) as bx:
        f1 = T.alloc_fragment((1, 1), "int32")
        T.copy(A0[0:0 + 1, 0:0 + 1], f1)
        f3 = T.alloc_fragment((1, 1), "int32")
        T.copy(f1, f3)
        f4 = T.alloc_fragment((1,), "int32")
        for i2 in T.Parallel(1):
            f4[0] = 0
        T.reduce_sum(f3, f4, dim=0, clear=False)
