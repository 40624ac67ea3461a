import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((2, 128), "int32"), C: T.Tensor((2, 128), "int32"), O: T.Tensor((2, 128), "int32")):
    with T.Kernel(2, threads=128) as bx:
        for i in T.Parallel(128):
            C[bx, i] = A[bx, i] + 1
        for i in T.Parallel(128):
            O[bx, i] = C[bx, 127 - i]
