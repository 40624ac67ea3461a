# What is read under a condition, and again without it by a loop inside, is loaded for both.
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((8, 40), "int64"), B: T.Tensor((8, 40), "int64")):
    with T.Kernel(1, threads=160) as bx:
        s = T.alloc_shared((8, 40), "int64")
        T.copy(A, s)
        for i, j in T.Parallel(8, 40):
            B[i, j] = T.if_then_else(i < 5, s[i, j], 7)
            for k in T.serial(3):
                B[i, j] = B[i, j] + s[i, j]
