"""One thread writes a word and reads it again. The compiler has all others load it too, whatever the
one is doing, and drops what they get."""

import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((3, 12), "float32"), O: T.Tensor((3, 1), "float32")):
    with T.Kernel(3, threads=384) as bx:
        s = T.alloc_shared((12,), "float32")
        T.copy(A[bx, 0], s)
        least = T.alloc_fragment((1,), "float32")
        T.reduce_min(s, least, dim=0)
        scanned = T.alloc_fragment((1,), "float32")
        T.copy(least, scanned)
        T.cummax(scanned, dim=0)
        f = T.alloc_fragment((1,), "float32")
        for i in T.Parallel(1):
            f[i] = T.max(s[bx], i - scanned[i])
        T.copy(f, O[bx, 0])
