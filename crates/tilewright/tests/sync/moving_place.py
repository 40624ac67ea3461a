import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((128,), "int32"), O: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=128) as bx:
        tx = T.get_thread_binding()
        S = T.alloc_shared((256,), "int32")
        v = T.alloc_var("int32", A[3])
        S[tx + 128] = A[tx]
        S[v + tx] = A[tx]
        v = v + 1
        O[tx] = S[v + tx]
