# A fragment and its view were given registers in different orders.
import tilelang.language as T


@T.prim_func
def main(A18: T.Tensor((1, 16, 4), "int32")):
    with T.Kernel(1, threads=64) as bx:
        f7 = T.alloc_fragment((64,), "int32")
        for i0 in T.Parallel(64):
            f7[i0] = T.float16(1)
        f15 = T.reshape(f7, (16, 4))
        T.copy(f15, A18[0, 0, 0])
