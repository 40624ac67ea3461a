# A fragment whose elements lie in reverse over the lanes of two of three warps.
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((16, 16), "float16"), V: T.Tensor((16,), "int32"), C: T.Tensor((16, 16), "float32"), W: T.Tensor((16,), "int32")):
    with T.Kernel(1, threads=96) as bx:
        a = T.alloc_shared((16, 16), "float16")
        c = T.alloc_fragment((16, 16), "float32")
        v = T.alloc_fragment((16,), "int32")
        T.copy(A, a)
        T.clear(c)
        T.gemm(a, a, c, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
        for i in T.Parallel(16):
            v[i] = V[i]
        for i, j in T.Parallel(16, 16):
            c[i, j] = c[i, j] + v[15 - j]
        T.copy(c, C)
        T.copy(v, W)
