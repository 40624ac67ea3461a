# Both ways of a branch store once: what a wait leaves in flight counts it.
import tilelang.language as T
d18 = T.dynamic("d18")


@T.prim_func
def main(A12: T.Tensor((8, 9), "int8"), A14: T.Tensor((1, 1), "int32"), A16: T.Tensor((1, d18), "int32")):
    with T.Kernel(1, 1, threads=128) as (bx, by):
        f11 = T.alloc_fragment((9, 1), "int32")
        s13 = T.alloc_shared((8, 9), "int8")
        s15 = T.alloc_shared((1, 8), "int8")
        s17 = T.alloc_shared((16, 32), "int32")
        for i2 in T.Pipelined(1, num_stages=2):
            T.clear(f11)
            T.copy(A12[0:0 + 8, 0:0 + 9], s13)
            T.copy(A14[0, 0], s15)
            for i7, i8 in T.Parallel(16, 32):
                s17[i7, i8] = A16[0, i8]
            T.gemm(s13, s15, f11, transpose_A=True, transpose_B=True)
