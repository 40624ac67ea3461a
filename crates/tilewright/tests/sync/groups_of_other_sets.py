# A group waits for itself, then with another that is there before it: barriers of their own.
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((256,), "float32"), B: T.Tensor((128,), "float32"), C: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=256) as bx:
        S = T.alloc_shared((128,), "float32")
        U = T.alloc_shared((256,), "float32")
        with T.ws(0):
            T.copy(A[0:128], S)
            for i in T.Parallel(128):
                B[i] = S[127 - i]
        with T.ws(0, 1):
            T.copy(A, U)
            for i in T.Parallel(256):
                C[i] = U[255 - i]
