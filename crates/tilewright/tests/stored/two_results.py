"""Two results of 16 bits, one of them by two warp groups beside each other, and one of 8 bits."""

import tilelang.language as T


@T.prim_func
def two_results(
    A: T.Tensor((64, 64), "float16"),
    B: T.Tensor((64, 256), "float16"),
    C: T.Tensor((64, 256), "float16"),
    D: T.Tensor((2, 60, 256), "bfloat16"),
    E: T.Tensor((64, 256), "int8"),
):
    with T.Kernel(1, threads=256) as bx:
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((64, 256), "float16")
        C_local = T.alloc_fragment((64, 256), "float32")
        D_local = T.alloc_fragment((64, 256), "float32")
        T.copy(A, A_shared)
        T.copy(B, B_shared)
        T.clear(C_local)
        T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C)
        for i, j in T.Parallel(64, 256):
            D_local[i, j] = C_local[i, j] * 2.0
        T.copy(D_local, D[1, 0, 0])
        for i, j in T.Parallel(64, 256):
            D_local[i, j] = T.min(C_local[i, j], 100.0)
        T.copy(D_local, E)
