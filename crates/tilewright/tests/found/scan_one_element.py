# A scan of a single element.
import tilelang.language as T


@T.prim_func
def main():
    with T.Kernel(1, threads=32) as bx:
        s1 = T.alloc_shared((1,), "int32")
        for i0 in T.Parallel(1):
            s1[0] = 0
        f3 = T.alloc_fragment((1,), "int32")
        T.cummax(s1, f3, dim=0, reverse=True)
