import tilelang.language as T
# The sum of the first product is the left factor of the second.
@T.prim_func
def main(A: T.Tensor((96, 64), "float64"), B: T.Tensor((64, 80), "float64"), D: T.Tensor((80, 48), "float64"), C: T.Tensor((64, 48), "float64")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((32, 64), "float64")
        b = T.alloc_shared((32, 32), "float64")
        d = T.alloc_shared((32, 48), "float64")
        p = T.alloc_fragment((64, 32), "float64")
        c = T.alloc_fragment((64, 48), "float64")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=3):
            T.copy(A[k * 32, 0], a)
            T.copy(B[0:32, k * 32 : k * 32 + 32], b)
            T.copy(D[k * 32, 0], d)
            T.gemm(a, b, p, transpose_A=True, clear_accum=True)
            T.gemm(p, d, c)
        T.copy(c, C)
