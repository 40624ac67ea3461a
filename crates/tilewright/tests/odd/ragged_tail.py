# set: trips=3 stages=2
# set: trips=5 stages=3
# set: trips=4 stages=4
"""Tiles that do not divide over the threads, in pipelines."""

import tilelang.language as T


def build(trips=3, stages=2):
    @T.prim_func
    def main(A: T.Tensor((40, 60), "float16"), B: T.Tensor((60, 40), "float16"), O: T.Tensor((17, 24), "float32")):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_shared((17, 16), "float16")
            b = T.alloc_shared((16, 24), "float16")
            c = T.alloc_fragment((17, 24), "float32")
            T.clear(c)
            for k in T.Pipelined(trips, num_stages=stages):
                T.copy(A[0, k * 16], a)
                T.copy(B[k * 16, 0], b)
                T.gemm(a, b, c)
            T.copy(c, O)
    return main
