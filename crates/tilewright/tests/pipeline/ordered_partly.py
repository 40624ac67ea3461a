"""The user leaves the copies to the compiler, by groups."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((6, 32, 32), "float32"), B: T.Tensor((6, 32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 32), "float32")
            R = T.alloc_shared((32, 32), "float32")
            tile = T.alloc_fragment((32, 32), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            for k in T.Pipelined(6, num_stages=num_stages, order=[-1, 1, -1, 0], stage=[-1, 0, -1, 1], group=[[0], [1, 2], [3], [4]]):
                T.copy(A[k, 0, 0], S)
                for i, j in T.Parallel(32, 32):
                    tile[i, j] = S[j, i] * 3
                for i, j in T.Parallel(32, 32):
                    tile[i, j] = tile[i, j] + 1
                T.copy(B[k, 0, 0], R)
                for i, j in T.Parallel(32, 32):
                    acc[i, j] = acc[i, j] * 2 + tile[i, j] + R[j, i]
            T.copy(acc, C)
    return main
