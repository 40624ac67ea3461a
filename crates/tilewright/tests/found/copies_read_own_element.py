# Copies of a point must not read what the first of them changes.
import tilelang.language as T


@T.prim_func
def main():
    with T.Kernel(1, 1, threads=32) as (bx, by):
        f2 = T.alloc_fragment((2, 16), "int32")
        T.clear(f2)
        f7 = T.alloc_fragment((2,), "int32")
        T.reduce_sum(f2, f7, dim=1)
        s8 = T.alloc_shared((2,), "int32")
        for i3 in T.Parallel(2):
            s8[i3] = T.bfloat16(1)
            if (T.bfloat16(1) == s8[i3]):
                s8[i3] = f7[i3]
