# An accumulator is seen as one row.
import tilelang.language as T


@T.prim_func
def main(A3: T.Tensor((5, 1), "int32"), A5: T.Tensor((1, 1), "int32")):
    with T.Kernel(1, threads=64) as bx:
        f2 = T.alloc_fragment((8, 64), "float32")
        s4 = T.alloc_shared((1, 8), "bfloat16")
        T.copy(A3[4:4 + 1, bx:bx + 8], s4)
        f6 = T.alloc_fragment((64, 1), "bfloat16")
        T.copy(A5[0, 0], f6)
        T.gemm(s4, f6, f2, transpose_A=True, transpose_B=True, clear_accum=True)
        f19 = T.reshape(f2, (512,))
