# A row shorter than a vector, under a condition.
import tilelang.language as T
d5 = T.dynamic("d5")


@T.prim_func
def main(A0: T.Tensor((7, d5), "float16"), A4: T.Tensor((1,), "int32")):
    with T.Kernel(3, threads=32) as bx:
        f1 = T.alloc_fragment((2, 64), "float16")
        T.copy(A0[4, 3], f1)
        f2 = T.alloc_fragment((2, 1), "float32")
        T.reduce_min(f1, f2, dim=1)
        f3 = T.alloc_fragment((2, 64), "int32")
        for i0, i1 in T.Parallel(2, 64):
            if ((((A4[i1] // 13) % 4097) + (-2048)) <= (T.float16(0) + f1[i0, i1])):
                f3[i0, i1] = f1[i0, i1]
