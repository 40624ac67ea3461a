"""A reduction through shared memory inside the loop."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((5, 32, 32), "float32"), C: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 32), "float32")
            tile = T.alloc_fragment((32, 32), "float32")
            total = T.alloc_fragment((32,), "float32")
            T.clear(total)
            for k in T.Pipelined(5, num_stages=num_stages):
                T.copy(A[k, 0, 0], S)
                for i, j in T.Parallel(32, 32):
                    tile[i, j] = S[j, i] * (k + 1)
                T.reduce_sum(tile, total, dim=0, clear=False)
            T.copy(total, C)
    return main
