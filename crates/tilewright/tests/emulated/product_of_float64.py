import tilelang.language as T
# A lane holds rows of the sum that are four apart.
@T.prim_func
def main(A: T.Tensor((64, 96), "float64"), B: T.Tensor((96, 32), "float64"), C: T.Tensor((64, 32), "float64")):
    with T.Kernel(2, threads=128) as bx:
        a = T.alloc_shared((32, 32), "float64")
        b = T.alloc_shared((32, 32), "float64")
        c = T.alloc_fragment((32, 32), "float64")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=2):
            T.copy(A[bx * 32, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C[bx * 32, 0])
