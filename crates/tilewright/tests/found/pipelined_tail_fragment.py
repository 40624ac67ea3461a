# Pipelined copies that start past the end, through registers.
import tilelang.language as T


@T.prim_func
def main(A5: T.Tensor((1, 1), "int32"), A7: T.Tensor((1, 1), "bfloat16")):
    with T.Kernel(1, threads=64) as bx:
        f4 = T.alloc_fragment((1, 1), "float32")
        T.clear(f4)
        f8 = T.alloc_fragment((1, 1), "bfloat16")
        for i2 in T.Pipelined(2, num_stages=2):
            s6 = T.alloc_shared((1, 1), "bfloat16")
            T.copy(A5[0, 0], s6)
            T.copy(A7[0:0 + 1, (i2 * 17):(i2 * 17) + 1], f8)
            T.gemm(s6, f8, f4, transpose_A=True, transpose_B=True)
