"""Blocks of several waves hand rows to each other across the grid's barrier."""
# without 1: s_waitcnt vmcnt(0) lgkmcnt(0) -> block-race
# without 3: s_waitcnt vmcnt(0) lgkmcnt(0) -> block-race
# without 1: buffer_wbl2 sc1 -> block-race
# without 2: buffer_inv sc1 -> block-race

import tilelang.language as T


@T.prim_func
def main(
    A: T.Tensor((6, 256), "int32"),
    B: T.Tensor((6, 256), "int32"),
    C: T.Tensor((6, 256), "int32"),
    O: T.Tensor((6, 256), "int32"),
):
    with T.Kernel(6, threads=256) as bx:
        tx = T.get_thread_binding(0)
        B[bx, tx] = A[bx, tx] + bx
        T.sync_grid()
        C[bx, tx] = B[5 - bx, 255 - tx]
        T.sync_grid()
        O[bx, tx] = C[(bx + 1) % 6, (tx + 64) % 256]
