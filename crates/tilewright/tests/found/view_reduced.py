# A view of a fragment is reduced along a dimension that the fragment does not have.
import tilelang.language as T


@T.prim_func
def main(A0: T.Tensor((1,), "int32")):
    with T.Kernel(1, 1, threads=32) as (bx, by):
        f1 = T.alloc_fragment((40,), "int32")
        T.copy(A0[0], f1)
        f7 = T.alloc_fragment((8,), "int32")
        f3 = T.reshape(f1, (5, 8))
        T.reduce_sum(f3, f7, dim=0)
