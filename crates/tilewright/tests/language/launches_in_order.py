import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((128,), "float32"), O: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=64):
        T.pdl_sync()
        for i in T.Parallel(128):
            O[i] = A[i] * 2.0
        T.pdl_trigger()
