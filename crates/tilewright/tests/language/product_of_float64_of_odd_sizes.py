import tilelang.language as T
# Tiles that no instruction divides, three warps, tensors that end inside of tiles.
@T.prim_func
def main(A: T.Tensor((37, 45), "float64"), B: T.Tensor((45, 29), "float64"), C: T.Tensor((37, 29), "float64")):
    with T.Kernel(2, threads=192) as bx:
        a = T.alloc_shared((20, 10), "float64")
        b = T.alloc_shared((10, 29), "float64")
        c = T.alloc_fragment((20, 29), "float64")
        T.clear(c)
        for k in T.Pipelined(5, num_stages=2):
            T.copy(A[bx * 20, k * 10], a)
            T.copy(B[k * 10, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C[bx * 20, 0])
