import tilelang.language as T
# The first sum is the left factor of the second product where it lies, and its transpose the right one.
@T.prim_func
def main(A: T.Tensor((32, 16), "float64"), B: T.Tensor((16, 32), "float64"), D: T.Tensor((32, 16), "float64"), C: T.Tensor((32, 16), "float64"), E: T.Tensor((16, 32), "float64")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((32, 16), "float64")
        b = T.alloc_shared((16, 32), "float64")
        d = T.alloc_shared((32, 16), "float64")
        p = T.alloc_fragment((32, 32), "float64")
        q = T.alloc_fragment((32, 32), "float64")
        c = T.alloc_fragment((32, 16), "float64")
        e = T.alloc_fragment((16, 32), "float64")
        T.copy(A, a)
        T.copy(B, b)
        T.copy(D, d)
        T.gemm(a, b, p, clear_accum=True)
        T.gemm(p, d, c, clear_accum=True)
        T.gemm(a, b, q, clear_accum=True)
        T.gemm(d, q, e, transpose_A=True, clear_accum=True)
        T.copy(c, C)
        T.copy(e, E)
