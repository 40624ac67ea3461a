import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((64, 96), "int32"), C: T.Tensor((64, 96), "int32"), O: T.Tensor((32, 64), "int32")):
    with T.Kernel(2, threads=96) as bx:
        S = T.alloc_shared((32, 32), "int32")
        acc = T.alloc_fragment((32, 32), "int32")
        T.clear(acc)
        for k in T.Pipelined(3, num_stages=2):
            T.copy(A[bx * 32, k * 32], S)
            T.copy(S, C[bx * 32, k * 32])
            for i, j in T.Parallel(32, 32):
                acc[i, j] = acc[i, j] + C[bx * 32 + j, k * 32 + i]
        T.copy(acc, O[0, bx * 32])
