"""The block that comes last adds up what all have left. One thread counts for its block."""
# without 1: s_waitcnt vmcnt(0) lgkmcnt(0) -> block-race
# without 1: buffer_wbl2 sc1 -> block-race

import tilelang.language as T


@T.prim_func
def main(
    A: T.Tensor((4, 256), "int32"),
    count: T.Tensor((1,), "int32"),
    parts: T.Tensor((4, 256), "int32"),
    O: T.Tensor((256,), "int32"),
):
    with T.Kernel(4, threads=256) as bx:
        tx = T.get_thread_binding(0)
        arrived = T.alloc_shared((1,), "int32")
        parts[bx, tx] = A[bx, tx] * 3
        T.sync_threads()
        if tx == 0:
            arrived[0] = T.atomic_add(count[0], 1, memory_order="acq_rel", return_prev=True)
        T.sync_threads()
        if arrived[0] == 3:
            O[tx] = parts[0, 255 - tx] + parts[1, 255 - tx] + parts[2, 255 - tx] + parts[3, 255 - tx]
