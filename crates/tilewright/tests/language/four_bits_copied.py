import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((8, 16), "int4"), B: T.Tensor((8, 16), "float4_e2m1fn"), O: T.Tensor((8, 16), "int32"), P: T.Tensor((8, 16), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((8, 16), "int4")
        b = T.alloc_shared((8, 16), "float4_e2m1fn")
        T.copy(A, a)
        T.copy(B, b)
        for i, j in T.Parallel(8, 16):
            O[i, j] = a[7 - i, j] * 3
            P[i, j] = b[7 - i, j] + 1.0
