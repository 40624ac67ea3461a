"""TileLang #1822: a mask computed from indices that other threads put in shared memory.

Each thread scatters a one to a place it read from memory; a parallel loop then reads the places of other
threads. Without a hand-written barrier the generated kernel reads too early.
"""

import tilelang
import tilelang.language as T


def kernel(B=3, S=40, picks=8, threads=64):
    @T.prim_func
    def scatter(Indices: T.Tensor((B, picks), "int32"), Mask: T.Tensor((B, S), "int32")):
        with T.Kernel(B, threads=threads) as bx:
            tx = T.get_thread_binding(0)
            mask = T.alloc_shared((S,), "int32")

            T.clear(mask)
            if tx < picks:
                if Indices[bx, tx] >= 0:
                    mask[Indices[bx, tx]] = 1
            for j in T.Parallel(S):
                Mask[bx, j] = mask[S - 1 - j]

    return scatter
