# A variable's initial value.
import tilelang.language as T


@T.prim_func
def main(A0: T.Tensor((1,), "int32")):
    with T.Kernel(1, threads=192) as bx:
        s1 = T.alloc_shared((2,), "int32")
        T.copy(A0[bx:bx + 2], s1)
        s2 = T.alloc_shared((2,), "int32")
        T.copy(s1, s2)
        T.cummax(s2, dim=0, reverse=True)
        v9 = T.alloc_var("int32", init=s2[1])
