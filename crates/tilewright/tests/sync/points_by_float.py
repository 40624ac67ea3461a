# Points that store to their own element under a condition on floats: no two threads meet.
import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((2,), "int32"), B: T.Tensor((2,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        s = T.alloc_shared((2,), "int32")
        t = T.alloc_shared((2,), "int32")
        for i in T.Parallel(2):
            s[i] = 0
            t[1 - i] = 7
        for i in T.Parallel(2):
            if T.cast(i, "float16") < 1:
                s[i] = A[i]
            if T.cast(i, "float32") == 1:
                pass
            else:
                s[i] = s[i] + 1
            if T.cast(i, "float32") < 1:
                t[1] = 5
        for i in T.Parallel(2):
            B[i] = s[1 - i] * 10 + t[i]
