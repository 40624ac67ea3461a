import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(16):
            v = T.float32x4(A[i * 4], A[i * 4 + 1], A[i * 4 + 2], A[i * 4 + 3])
            O[i * 4:i * 4 + 4] = v * v
