import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((256,), "int32"), O: T.Tensor((256,), "int32")):
    with T.Kernel(1, threads=256) as bx:
        S = T.alloc_shared((256,), "int32")
        tx = T.get_thread_binding()
        with T.ws(0):
            v = T.alloc_var("int32", 0)
            while v < 3:
                S[tx] = A[tx] + v
                O[tx] = S[127 - tx]
                v = v + 1
