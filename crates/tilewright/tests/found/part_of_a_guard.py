# Of the guard of a store only a part can be counted: it keeps the groups apart.
import tilelang.language as T
d22 = T.dynamic("d22")


@T.prim_func
def main(A20: T.Tensor((1, 1), "int32"), A22: T.Tensor((1, 1), "int32"), A25: T.Tensor((d22,), "float32")):
    with T.Kernel(1, threads=256) as bx:
        full0 = T.alloc_barrier([128] * 1)
        empty0 = T.alloc_barrier([128] * 1)
        with T.ws(0):
            for i14 in T.serial(1):
                T.mbarrier_wait_parity(empty0[i14 % 1], (i14 // 1 + 1) % 2)
                T.mbarrier_arrive(full0[i14 % 1])
        with T.ws(1):
            for i14 in T.serial(1):
                T.mbarrier_wait_parity(full0[i14 % 1], (i14 // 1) % 2)
                T.mbarrier_arrive(empty0[i14 % 1])
        f19 = T.alloc_fragment((1, 2), "float32")
        T.clear(f19)
        f23 = T.alloc_fragment((2, 1), "float32")
        s21 = T.alloc_shared((1, 1), "float32")
        T.copy(A20[0, 0], s21)
        T.copy(A22[0, 0], f23)
        T.gemm(s21, f23, f19, transpose_B=True)
        f24 = T.alloc_fragment((2,), "float32")
        T.reduce_sum(f19, f24, dim=0)
        T.copy(f24, A25[0])
