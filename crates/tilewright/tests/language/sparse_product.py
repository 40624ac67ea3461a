import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((64, 64), "float16"), E: T.Tensor((64, 8), "int16"), B: T.Tensor((32, 128), "float16"), C: T.Tensor((64, 32), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 32), "float16")
        e = T.alloc_shared((64, 4), "int16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[0, k * 32], a)
            # Places 0 and one of 1 to 3, of every second group the same.
            for i, j in T.Parallel(64, 4):
                e[i, j] = 0x4444 + E[i, k * 4 + j] % 3 * 0x404 + E[i, k * 4 + j] // 3 % 3 * 0x4040
            T.copy(B[0, k * 64], b)
            T.gemm_sp(a, e, b, c, transpose_B=True)
        T.copy(c, C)
