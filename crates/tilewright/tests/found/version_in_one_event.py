# A version is written and read with nothing between.
import tilelang.language as T


@T.prim_func
def main(A12: T.Tensor((2,), "int32"), A16: T.Tensor((1, 1), "int32")):
    with T.Kernel(1, threads=32) as bx:
        s13 = T.alloc_shared((1,), "int32")
        for i7 in T.serial(1):
            for i8 in T.Pipelined(1, num_stages=2):
                for i9 in T.Parallel(1):
                    s13[0] = A12[1]
                for i12 in T.Parallel(1):
                    A16[0, 0] = s13[0]
