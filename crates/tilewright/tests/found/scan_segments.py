# Segments of a scan that would start past the end.
import tilelang
import tilelang.language as T


@T.prim_func
def main(A0: T.Tensor((1, 1, 1), "int32")):
    with T.Kernel(1, threads=32) as bx:
        s1 = T.alloc_shared((7, 1, 6), "float32")
        T.copy(A0[bx:bx + 7, 0:0 + 1, bx:bx + 6], s1)
        s3 = T.reshape(s1, (42,))
        f4 = T.alloc_fragment((42,), "float32")
        T.cumsum(s3, f4, dim=0)
