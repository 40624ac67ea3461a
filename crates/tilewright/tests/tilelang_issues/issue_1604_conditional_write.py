"""TileLang #1604: shared memory that one thread writes under a condition and all threads read.

The write in the branch is not seen to conflict with the read after it, and the barrier between the two is
missing; nor is the one that keeps the next iteration's write away from slow readers.
"""

import tilelang
import tilelang.language as T


def kernel(N=5, threads=128):
    @T.prim_func
    def announce(X: T.Tensor((N,), "int32"), Y: T.Tensor((N, threads), "int32")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            flag = T.alloc_shared((1,), "int32")

            for k in T.serial(N):
                if tx == k * 29 % threads:
                    flag[0] = X[k] + tx
                Y[k, tx] = flag[0]

    return announce
