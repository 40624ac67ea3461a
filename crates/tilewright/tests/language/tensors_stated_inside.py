import tilelang.language as T
@T.prim_func
def main(A, B: T.Tensor, k: T.int32):
    m = T.dynamic("m")
    A: T.Tensor[[m, 16], T.float32]
    B: T.Tensor[[m, 16], T.float32]
    O = T.empty((m, 16), T.float32)
    with T.Kernel(m, threads=16) as bx:
        for i in T.Parallel(16):
            O[bx, i] = A[bx, i] + B[bx, i] * k
    return O
