# A scan of a fragment of one element.
import tilelang.language as T


@T.prim_func
def main(A0: T.Tensor((1,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        f1 = T.alloc_fragment((1,), "int32")
        T.copy(A0[0], f1)
        f8 = T.alloc_fragment((1,), "int32")
        T.cummax(f1, f8, dim=0)
