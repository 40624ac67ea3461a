import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((128,), "float32"), O: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=64):
        x = T.Tensor((8, 16), "float32", A.data)
        s = T.alloc_shared((16, 8), "float32")
        flat = T.Tensor((128,), "int32", s.data)
        for i, j in T.Parallel(8, 16):
            s[j, i] = x[i, j] * 2.0
        T.copy(flat, O)
