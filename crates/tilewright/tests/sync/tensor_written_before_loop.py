# The tensor that the loop's copies read is written before the loop.
import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M=64, N=64, K=256):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((M, 64), "float16")
            B_shared = T.alloc_shared((N, 64), "float16")
            C_local = T.alloc_fragment((M, N), "float32")
            for i, j in T.Parallel(M, K):
                A[i, j] = T.cast((i + j) % 4, "float16")
            T.clear(C_local)
            for k in T.Pipelined(K // 64, num_stages=3):
                T.copy(A[0, k * 64], A_shared)
                T.copy(B[0, k * 64], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C)

    return main
