# The trip count of a pipelined loop depends on the index of the only block.
import tilelang.language as T


@T.prim_func
def main(A5: T.Tensor((1, 2), "float16"), A7: T.Tensor((1, 1), "int32")):
    with T.Kernel(1, 1, threads=64) as (bx, by):
        f4 = T.alloc_fragment((8, 1), "float32")
        T.clear(f4)
        s6 = T.alloc_shared((16, 8), "float16")
        s8 = T.alloc_shared((1, 16), "float16")
        T.copy(A7[0, 0], s8)
        for i0 in T.Pipelined((by + 3), num_stages=4):
            T.copy(A5[i0:i0 + 16, bx:bx + 8], s6)
            T.gemm(s6, s8, f4, transpose_A=True, transpose_B=True)
