# Loops inside each other of which no block runs both.
import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((6,), "int32"), B: T.Tensor((2,), "int32")):
    with T.Kernel(2, threads=32) as bx:
        s = T.alloc_shared((1,), "int32")
        for i in T.Parallel(1):
            B[bx] = 0
        for i in T.serial(bx):
            for j in T.serial(1 - bx):
                T.copy(A[5:6], s)
                for k in T.Parallel(2):
                    T.atomic_min(B[bx], s[0])
