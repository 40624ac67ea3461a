"""Softmax over the rows of a matrix, in one pass over the data and one to write.

    X and Y are (M, N); Y[i, :] = exp(X[i, :] - max) / sum(exp(X[i, :] - max)).

Rows may be longer than a tile. The first loop keeps the largest value seen so far and the sum of
exponentials relative to it, and rescales the sum whenever the maximum grows. Columns past the end
of a row count as minus infinity, so they add nothing.

    tilewright run examples/online_softmax.py
    tilewright run examples/online_softmax.py --set M=70 --set N=333
"""

import math

import tilelang
import tilelang.language as T

LOG2_E = math.log2(math.e)


@tilelang.jit(out_idx=[-1])
def softmax(M=256, N=1024, block_M=16, block_N=128, threads=128, dtype="float16", accum_dtype="float32"):
    tiles = T.ceildiv(N, block_N)

    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, block_N), accum_dtype)
            largest = T.alloc_fragment((block_M,), accum_dtype)
            previous = T.alloc_fragment((block_M,), accum_dtype)
            tile_sum = T.alloc_fragment((block_M,), accum_dtype)
            total = T.alloc_fragment((block_M,), accum_dtype)
            scale = T.alloc_fragment((block_M,), accum_dtype)

            T.fill(largest, -T.infinity(accum_dtype))
            T.clear(total)
            for k in T.serial(tiles):
                for i, j in T.Parallel(block_M, block_N):
                    x[i, j] = T.if_then_else(
                        k * block_N + j < N,
                        T.cast(X[bx * block_M + i, k * block_N + j], accum_dtype),
                        -T.infinity(accum_dtype),
                    )
                T.copy(largest, previous)
                T.reduce_max(x, largest, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    x[i, j] = T.exp2((x[i, j] - largest[i]) * LOG2_E)
                T.reduce_sum(x, tile_sum, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * T.exp2((previous[i] - largest[i]) * LOG2_E) + tile_sum[i]

            # One division a row; every element is multiplied.
            for i in T.Parallel(block_M):
                scale[i] = 1.0 / total[i]
            for k in T.serial(tiles):
                T.copy(X[bx * block_M, k * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    x[i, j] = T.exp2((x[i, j] - largest[i]) * LOG2_E) * scale[i]
                T.copy(x, Y[bx * block_M, k * block_N])

    return kernel


def main():
    import torch

    x = torch.randn(4096, 8192, device="cuda", dtype=torch.float16)
    kernel = softmax(4096, 8192, block_M=4, block_N=1024)
    torch.testing.assert_close(kernel(x), torch.softmax(x, dim=1), rtol=1e-2, atol=1e-3)


if __name__ == "__main__":
    main()
