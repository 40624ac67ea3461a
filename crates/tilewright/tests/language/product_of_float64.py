import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((64, 96), "float64"), B: T.Tensor((48, 96), "float64"), C: T.Tensor((64, 48), "float64")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 32), "float64")
        b = T.alloc_fragment((48, 32), "float64")
        c = T.alloc_fragment((64, 48), "float64")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=2):
            T.copy(A[0, k * 32], a)
            T.copy(B[0, k * 32], b)
            T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C)
