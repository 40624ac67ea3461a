import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((128,), "int32"), O: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=256) as bx:
        S = T.alloc_shared((128,), "int32")
        R = T.alloc_shared((128,), "int32")
        bar = T.alloc_barrier(128)
        tx = T.get_thread_binding()
        with T.ws(0):
            S[tx] = A[tx]
            T.mbarrier_arrive(bar[0])
        with T.ws(1):
            T.mbarrier_wait_parity(bar[0], 0)
            R[tx - 128] = S[255 - tx]
        with T.ws(0):
            O[tx] = S[127 - tx]
