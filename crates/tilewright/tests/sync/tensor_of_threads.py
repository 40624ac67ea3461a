import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((256,), "int32"), C: T.Tensor((256,), "int32"), O: T.Tensor((256,), "int32")):
    with T.Kernel(1, threads=256) as bx:
        tx = T.get_thread_binding()
        C[(tx * 37) % 256] = A[tx]
        x = T.alloc_var("int32", init=C[tx ^ 5])
        if A[0] > 0:
            C[tx] = x
        O[tx] = C[(tx + 64) % 256] + x
