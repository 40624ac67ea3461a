import tilelang.language as T
M = T.dynamic("M")
N = T.dynamic("N")
@T.prim_func
def main(A: T.Tensor((M, N), "int32"), C: T.Tensor((M, N), "int32"), O: T.Tensor((M, N), "int32")):
    with T.Kernel(T.ceildiv(M, 32), threads=128) as bx:
        S = T.alloc_shared((32, 64), "int32")
        for k in T.serial(T.ceildiv(N, 64)):
            T.copy(A[bx * 32, k * 64], S)
            T.copy(S, C[bx * 32, k * 64])
            for i, j in T.Parallel(32, 64):
                if bx * 32 + 31 - i < M and k * 64 + j < N and bx * 32 + i < M:
                    O[bx * 32 + i, k * 64 + j] = C[bx * 32 + 31 - i, k * 64 + j]
