# A variable's initial value.
import tilelang.language as T


@T.prim_func
def main():
    with T.Kernel(1, threads=96) as bx:
        s1 = T.alloc_shared((1, 1), "int32")
        for i1 in T.Parallel(1):
            s1[0, 0] = 0.0
        s2 = T.alloc_shared((1,), "int32")
        T.reduce_sum(s1, s2, dim=1)
        f5 = T.alloc_fragment((2, 33), "float32")
        T.fill(f5, 4)
        s10 = T.alloc_shared((33,), "int32")
        T.reduce_sum(f5, s10, dim=0)
        v11 = T.alloc_var("int32", init=s2[0])
        s14 = T.alloc_shared((2, 33), "float32")
        T.cumsum(f5, s14, dim=0)
