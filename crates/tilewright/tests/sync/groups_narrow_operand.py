# A handshake over two slots of an operand that is narrower than the instruction: the lanes beyond
# its end read nothing, so they do not meet the other slot.
import tilelang
import tilelang.language as T


@T.prim_func
def main(
    A: T.Tensor((4, 16), "bfloat16"), B: T.Tensor((2, 16), "bfloat16"), C: T.Tensor((16, 16), "float32")
):
    with T.Kernel(1, threads=256) as bx:
        a = T.alloc_shared((2, 16, 2), "bfloat16")
        b = T.alloc_shared((2, 16), "bfloat16")
        c = T.alloc_fragment((16, 16), "float32")
        full = T.alloc_barrier([128] * 2)
        empty = T.alloc_barrier([128] * 2)
        T.copy(B, b)
        with T.ws(1):
            T.clear(c)
            for k in T.serial(4):
                T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)
                T.gemm(a[k % 2, :, :], b, c)
                T.mbarrier_arrive(empty[k % 2])
            T.copy(c, C)
        with T.ws(0):
            for k in T.serial(4):
                T.mbarrier_wait_parity(empty[k % 2], (k // 2 + 1) % 2)
                for i, j in T.Parallel(16, 2):
                    a[k % 2, i, j] = A[k, i] + j
                T.mbarrier_arrive(full[k % 2])
