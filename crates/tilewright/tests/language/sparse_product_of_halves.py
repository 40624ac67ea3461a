import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((32, 16), "float32"), E: T.Tensor((32, 8), "uint8"), B: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_fragment((32, 16), "float32")
        e = T.alloc_fragment((32, 8), "uint8")
        b = T.alloc_shared((32, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.copy(A, a)
        T.copy(B, b)
        for i, j in T.Parallel(32, 8):
            e[i, j] = T.if_then_else(E[i, j] % 3 == 0, 0x4E, 0xE4)
        T.gemm_sp(a, e, b, c, clear_accum=True)
        T.copy(c, C)
