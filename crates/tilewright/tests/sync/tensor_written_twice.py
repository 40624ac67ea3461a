import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((16, 24), "int32"), O: T.Tensor((16, 24), "int32")):
    with T.Kernel(1, threads=100) as bx:
        S = T.alloc_shared((24, 16), "int32")
        T.copy(A, O)
        for i, j in T.Parallel(24, 16):
            S[i, j] = A[j, i] * 2
        for k in T.serial(3):
            for i, j in T.Parallel(24, 16):
                if (i + j + k) % 2 == 0:
                    O[(j + k) % 16, i] = S[i, j] + k
