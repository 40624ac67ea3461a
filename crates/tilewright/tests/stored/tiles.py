"""Blocks take tiles in turn: the results of one go out while the next is multiplied. They reach over
the end of C."""

import tilelang.language as T


@T.prim_func
def tiles(
    A: T.Tensor((100, 64), "float16"),
    B: T.Tensor((64, 136), "float16"),
    C: T.Tensor((100, 136), "float16"),
):
    with T.Kernel(2, threads=128) as block:
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        for by, bx in T.Persistent([2, 3], 2, block, group_size=2):
            T.clear(C_local)
            for k in T.Pipelined(1, num_stages=2):
                T.copy(A[by * 64, k * 64], A_shared)
                T.copy(B[k * 64, bx * 64], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 64, bx * 64])
