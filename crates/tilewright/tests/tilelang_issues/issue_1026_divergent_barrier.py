"""TileLang #1026: a barrier that only every other thread reaches.

Even threads read a value of their own and hand it to their neighbour's place. The barrier between the two is put
inside the branch, where half of the threads never arrive, and the GPU hangs. Nobody reads what another wrote
before the branch ends, so no barrier is needed inside it at all.
"""

import tilelang
import tilelang.language as T


def kernel(threads=96):
    @T.prim_func
    def hand_over(X: T.Tensor((threads,), "float32"), Y: T.Tensor((threads,), "float32")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((threads,), "float32")

            shared[tx] = X[tx]
            if tx % 2 == 0:
                a = shared[tx]
                shared[tx ^ 1] = a
            Y[tx] = shared[tx]

    return hand_over
