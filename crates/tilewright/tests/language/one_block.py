import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((100,), "float32"), O: T.Tensor((100,), "float32")):
    with T.Kernel(threads=64):
        for i in T.Parallel(100):
            O[i] = A[i] * 2.0
