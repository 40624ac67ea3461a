# emulated
import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((16, 32), "int32"), O: T.Tensor((16, 32), "int4"), P: T.Tensor((15, 3), "float4_e2m1fn"), Q: T.Tensor((16, 32), "uint4")):
    with T.Kernel(2, threads=64) as bx:
        s = T.alloc_shared((16, 32), "uint4")
        for i, j in T.Parallel(16, 16):
            O[i, j * 2 + bx] = A[i, j * 2 + bx] - 5
        if bx == 1:
            for i, j in T.Parallel(15, 3):
                P[i, j] = A[i, j]
            for i, j in T.Parallel(16, 32):
                s[i, 31 - j] = A[i, j]
            T.copy(s, Q)
