# Fewer points than threads that read what they write: each is done once, also where the loop
# has as many copies of a point as a fragment in it has of an element.
import tilelang
import tilelang.language as T


@T.prim_func
def main(
    A: T.Tensor((4, 32), "int32"),
    B: T.Tensor((4,), "int32"),
    C: T.Tensor((4,), "int32"),
    D: T.Tensor((4,), "int32"),
):
    with T.Kernel(1, threads=128) as bx:
        x = T.alloc_fragment((4, 32), "int32")
        f = T.alloc_fragment((4,), "int32")
        s = T.alloc_shared((4,), "int32")
        T.copy(A, x)
        T.reduce_sum(x, f, dim=1)
        for i in T.Parallel(4):
            s[i] = i
            C[i] = 10 * i
        for i in T.Parallel(4):
            s[i] = s[i] + 1
            C[i] = C[i] + 1
        for i in T.Parallel(4):
            s[i] = s[i] + f[i]
        for i in T.Parallel(4):
            f[i] = f[i] + s[i]
            s[i] = s[i] + f[i]
        T.copy(s, B)
        T.copy(f, D)
