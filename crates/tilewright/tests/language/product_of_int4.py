# emulated
# Copies of half bytes straight to LDS, and operands that are read along K and across it.
import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((32, 128), "int4"), B: T.Tensor((32, 128), "int4"), D: T.Tensor((128, 32), "int4"), C: T.Tensor((32, 32), "int32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((32, 64), "int4")
        b = T.alloc_shared((32, 64), "int4")
        d = T.alloc_shared((64, 32), "int4")
        c = T.alloc_fragment((32, 32), "int32")
        T.clear(c)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[0, k * 64], a)
            T.copy(B[0, k * 64], b)
            T.copy(D[k * 64, 0], d)
            T.gemm(a, b, c, transpose_B=True)
            T.gemm(a, d, c)
        T.copy(c, C)
