import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((128,), "int32"), O: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=256) as bx:
        S = T.alloc_shared((128,), "int32")
        tx = T.get_thread_binding()
        with T.ws(0):
            S[tx] = A[tx]
        with T.ws(0):
            O[tx] = S[127 - tx]
