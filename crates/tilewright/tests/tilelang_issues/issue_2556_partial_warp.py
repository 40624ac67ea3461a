"""TileLang #2556: an exchange among the first 48 of 64 threads.

48 is no multiple of a warp, for which there is no partial barrier, and the barrier that the exchange
needs is dropped without a word. `kernel` has to be refused with the place of the exchange; `uniform`, in which
every thread comes by between the write and the read, has to work.
"""

import tilelang
import tilelang.language as T


def kernel(active=48, threads=64):
    @T.prim_func
    def reverse(X: T.Tensor((active,), "float32"), Y: T.Tensor((active,), "float32")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((active,), "float32")

            if tx < active:
                shared[tx] = X[tx]
                Y[tx] = shared[active - 1 - tx]

    return reverse


def uniform(active=48, threads=64):
    @T.prim_func
    def reverse(X: T.Tensor((active,), "float32"), Y: T.Tensor((active,), "float32")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((active,), "float32")

            if tx < active:
                shared[tx] = X[tx]
            if tx < active:
                Y[tx] = shared[active - 1 - tx]

    return reverse
