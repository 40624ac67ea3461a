import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((64, 384), "float16"), B: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=256):
        tx = T.get_thread_binding()
        s = T.alloc_shared((2, 64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        full = T.alloc_barrier([128] * 2)
        empty = T.alloc_barrier([128] * 2)
        T.copy(B, b)
        if tx >= 128:
            for k in T.serial(6):
                T.mbarrier_wait_parity(empty[k % 2], (k // 2 + 1) % 2)
                T.copy(A[0, k * 64], s[k % 2, :, :])
                T.mbarrier_arrive(full[k % 2])
        else:
            T.clear(c)
            for k in T.serial(6):
                T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)
                T.gemm(s[k % 2, :, :], b, c)
                T.mbarrier_arrive(empty[k % 2])
            T.copy(c, O)
