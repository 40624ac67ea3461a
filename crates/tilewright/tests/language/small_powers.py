# emulated
"""Powers of two below the smallest normal number of float32 are zero, in every type computed in it."""

import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32"), P: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding(0)
        x = A[tx] * 0.0 - 100.0 - T.cast(tx, "float32")
        O[tx] = T.exp2(x) * 1267650600228229401496703205376.0
        P[tx] = T.cast(T.exp2(T.cast(x, "bfloat16")), "float32") * 1267650600228229401496703205376.0
