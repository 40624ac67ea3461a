import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((512, 192), "float16"), B: T.Tensor((64, 192), "float16"), C: T.Tensor((512, 64), "float32")):
    with T.Kernel(2, threads=128) as bx:
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        for t in T.serial(2):
            for u in T.serial(2):
                T.clear(C_local)
                for k in T.Pipelined(3, num_stages=2):
                    T.copy(A[(bx * 4 + t * 2 + u) * 64, k * 64], A_shared)
                    T.copy(B[0, k * 64], B_shared)
                    T.gemm(A_shared, B_shared, C_local, transpose_B=True)
                T.copy(C_local, C[(bx * 4 + t * 2 + u) * 64, 0])
