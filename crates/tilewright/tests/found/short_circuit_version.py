# The right side of an or is read in one iteration alone.
import tilelang.language as T


@T.prim_func
def main(A8: T.Tensor((1, 1), "int32"), A10: T.Tensor((1,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        s9 = T.alloc_shared((1, 1), "int32")
        for i5 in T.Pipelined(3, num_stages=2):
            T.copy(A8[0, 0], s9)
            for i6 in T.Parallel(1):
                if ((i5 != 1) or (T.float16(1) < s9[0, 0])):
                    T.atomic_add(A10[0], T.int64(0))
