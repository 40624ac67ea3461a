# Copies of a point must not read what the first of them changes.
import tilelang.language as T


@T.prim_func
def main():
    with T.Kernel(1, threads=32) as bx:
        f1 = T.alloc_fragment((1,), "int32")
        for i0 in T.Parallel(1):
            f1[0] = T.int8(0)
        f7 = T.alloc_fragment((1,), "int32")
        T.reduce_sum(f1, f7, dim=0)
        f11 = T.alloc_fragment((1,), "int32")
        T.copy(f7, f11)
        v12 = T.alloc_var("int32", init=f11[0])
        for i6 in T.Parallel(1):
            if (f7[0] == f11[0]):
                f11[0] = T.int8(0)
