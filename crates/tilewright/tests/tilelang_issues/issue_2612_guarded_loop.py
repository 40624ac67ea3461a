"""TileLang #2612: threads exchange data in a loop under an `if` that only some of them take.

The barrier between the write and the read belongs inside the `if`, where it cannot stand, so it is moved
in front of it and orders nothing: the exchange races. `kernel` has to be refused with the place of the
exchange; `uniform`, with the `if` around the parts that need it, has to work.
"""

import tilelang
import tilelang.language as T


def kernel(steps=4, stride=4, threads=128):
    @T.prim_func
    def exchange(Y: T.Tensor((threads,), "int32")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((threads,), "int32")
            total = T.alloc_var("int32", 0)

            if tx % stride == 0:
                for k in T.serial(steps):
                    shared[tx] = tx + k
                    total += shared[(tx + stride) % threads]
            Y[tx] = total

    return exchange


def uniform(steps=4, stride=4, threads=128):
    @T.prim_func
    def exchange(Y: T.Tensor((threads,), "int32")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((threads,), "int32")
            total = T.alloc_var("int32", 0)

            for k in T.serial(steps):
                if tx % stride == 0:
                    shared[tx] = tx + k
                if tx % stride == 0:
                    total += shared[(tx + stride) % threads]
            Y[tx] = total

    return exchange
