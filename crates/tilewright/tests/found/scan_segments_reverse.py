# Segments of a scan that would start past the end, from the other side.
import tilelang
import tilelang.language as T
d6 = T.dynamic("d6")


@T.prim_func
def main(A0: T.Tensor((1, d6, 6), "int32")):
    with T.Kernel(1, threads=32) as bx:
        s1 = T.alloc_shared((5, 6, 6), "int32")
        T.copy(A0[0, 4, 0], s1)
        s4 = T.reshape(s1, (180,))
        s11 = T.alloc_shared((180,), "int32")
        T.cummax(s4, s11, dim=0, reverse=True)
