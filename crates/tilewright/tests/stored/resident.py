"""More tiles than multiprocessors, and room for one block on each: blocks stay."""

import tilelang.language as T


@T.prim_func
def resident(
    A: T.Tensor((1500, 64), "bfloat16"),
    B: T.Tensor((1480, 64), "bfloat16"),
    C: T.Tensor((1500, 1480), "bfloat16"),
):
    with T.Kernel(12, 12, threads=256) as (bx, by):
        A_shared = T.alloc_shared((128, 64), "bfloat16")
        B_shared = T.alloc_shared((128, 64), "bfloat16")
        C_local = T.alloc_fragment((128, 128), "float32")
        T.clear(C_local)
        for k in T.Pipelined(1, num_stages=4):
            T.copy(A[by * 128, k * 64], A_shared)
            T.copy(B[bx * 128, k * 64], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C[by * 128, bx * 128])
