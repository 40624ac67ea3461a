# emulated
import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((16, 32), "int32"), O: T.Tensor((16, 32), "float6_e3m2fn"), P: T.Tensor((15, 3), "float6_e2m3fn"), Q: T.Tensor((16, 32), "float6_e3m2fn"), R: T.Tensor((7, 9), "float6_e3m2fn")):
    with T.Kernel(2, threads=64) as bx:
        s = T.alloc_shared((16, 32), "float6_e3m2fn")
        for i, j in T.Parallel(16, 16):
            O[i, j * 2 + bx] = A[i, j * 2 + bx] % 9 - 4
        if bx == 1:
            for i, j in T.Parallel(15, 3):
                P[i, j] = A[i, j]
            for i, j in T.Parallel(16, 32):
                s[i, 31 - j] = A[i, j] % 17 - 8
            T.copy(s, Q)
            for i, j in T.Parallel(7, 9):
                R[i, j] = s[i, j]
