# The loop around a pipelined one may be left before it.
import tilelang.language as T


@T.prim_func
def main(n: T.int32, A: T.Tensor((64, 192), "float16"), B: T.Tensor((64, 192), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((64, 32), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        for t in T.serial(4):
            if t >= n % 3:
                break
            for k in T.Pipelined(6, num_stages=3):
                T.copy(A[0, k * 32], A_shared)
                T.copy(B[0, k * 32], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C)
