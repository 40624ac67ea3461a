"""Atomic operations on elements of less than a word, at the ends of tiles and of tensors: loops of
compare-and-swap on the words around them, which waves run at the same time."""

import tilelang.language as T


@T.prim_func
def main(
    A: T.Tensor((2, 256), "bfloat16"),
    B: T.Tensor((2, 256), "float16"),
    X: T.Tensor((3,), "float16"),
    Y: T.Tensor((1,), "float16"),
    O: T.Tensor((2, 5), "float16"),
    P: T.Tensor((2, 7), "bfloat16"),
):
    with T.Kernel(2, threads=256) as bx:
        tx = T.get_thread_binding(0)
        s = T.alloc_shared((5,), "float16")
        t = T.alloc_shared((7,), "bfloat16")
        T.fill(s, 1)
        T.fill(t, -3)
        T.sync_threads()
        T.atomic_max(s[tx % 5], B[bx, tx])
        T.atomic_max(t[tx % 7], A[bx, tx])
        if tx < 200:
            T.atomic_min(X[tx % 3], B[bx, tx])
            T.atomic_max(Y[0], B[bx, tx])
        T.sync_threads()
        T.copy(s, O[bx, 0:5])
        T.copy(t, P[bx, 0:7])
