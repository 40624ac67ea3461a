# A view of an accumulator whose rows are no power of two.
import tilelang.language as T


@T.prim_func
def main(A3: T.Tensor((1, 48), "int32"), A5: T.Tensor((1, 24), "int32"), A11: T.Tensor((1, 1152), "int32")):
    with T.Kernel(1, threads=64) as bx:
        f2 = T.alloc_fragment((48, 24), "float32")
        T.clear(f2)
        s4 = T.alloc_shared((9, 48), "bfloat16")
        s6 = T.alloc_shared((9, 24), "bfloat16")
        T.copy(A3[0, 0], s4)
        T.copy(A5[0, 0], s6)
        T.gemm(s4, s6, f2, transpose_A=True)
        f10 = T.reshape(f2, (1152,))
        for i3 in T.Parallel(1152):
            A11[0, i3] = f10[i3]
