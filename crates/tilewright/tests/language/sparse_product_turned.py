import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((32, 32), "int8"), E: T.Tensor((2, 32), "uint32"), B: T.Tensor((64, 32), "int8"), C: T.Tensor((32, 32), "int32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((32, 32), "int8")
        e = T.alloc_shared((2, 32), "uint32")
        b = T.alloc_shared((64, 32), "int8")
        c = T.alloc_fragment((32, 32), "int32")
        T.copy(A, a)
        T.copy(B, b)
        for i, j in T.Parallel(2, 32):
            # One of places 0 and 1, and one of 2 and 3.
            e[i, j] = E[i, j] * T.uint32(2654435761) & T.uint32(0x55555555) | T.uint32(0x88888888)
        T.gemm_sp(a, e, b, c, transpose_A=True, transpose_E=True, clear_accum=True)
        T.copy(c, C)
