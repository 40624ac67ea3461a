# A view that nothing uses still constrains its fragment.
import tilelang.language as T


@T.prim_func
def main(A9: T.Tensor((1, 1, 2, 5), "int32")):
    with T.Kernel(1, 1, threads=32) as (bx, by):
        f2 = T.alloc_fragment((2, 5), "int32")
        for i0, i1 in T.Parallel(2, 5):
            f2[i0, i1] = T.bfloat16(1)
        f3 = T.reshape(f2, (10,))
        T.copy(f2, A9[0, 0, 0, 0])
