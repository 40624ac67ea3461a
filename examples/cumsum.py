"""Running sums along the rows of a matrix, forwards or backwards.

    X and Y are (M, N); Y[i, j] = X[i, 0] + ... + X[i, j], or X[i, j] + ... + X[i, N - 1] with reverse.

Rows longer than a tile are scanned tile by tile; the total of the tiles already done is carried in
a fragment. cumsum_columns scans whole columns that fit into one tile.

    tilewright run examples/cumsum.py
    tilewright run examples/cumsum.py --set M=70 --set N=333 --set reverse=True
    tilewright run examples/cumsum.py:cumsum_columns --set N=90
"""

import tilelang
import tilelang.language as T


def cumsum(M=256, N=512, block_M=32, block_N=64, reverse=False, threads=128, dtype="float32"):
    tiles = (N + block_N - 1) // block_N

    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_shared((block_M, block_N), dtype)
            carry = T.alloc_fragment((block_M,), dtype)
            total = T.alloc_fragment((block_M,), dtype)

            T.clear(carry)
            for k in T.serial(tiles):
                start = (tiles - 1 - k if reverse else k) * block_N
                T.copy(X[bx * block_M, start], x)
                T.reduce_sum(x, total, dim=1)
                T.cumsum(x, dim=1, reverse=reverse)
                for i, j in T.Parallel(block_M, block_N):
                    Y[bx * block_M + i, start + j] = x[i, j] + carry[i]
                for i in T.Parallel(block_M):
                    carry[i] += total[i]

    return kernel


def cumsum_columns(M=128, N=256, block_N=32, reverse=False, threads=128, dtype="float32"):
    """Y[i, j] = X[0, j] + ... + X[i, j]: the whole height of a column is one tile."""

    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
            x = T.alloc_fragment((M, block_N), dtype)
            y = T.alloc_fragment((M, block_N), dtype)

            T.copy(X[0, bx * block_N], x)
            T.cumsum(x, y, dim=0, reverse=reverse)
            T.copy(y, Y[0, bx * block_N])

    return kernel


def main():
    import torch

    x = torch.randn(1024, 2048, device="cuda")
    kernel = tilelang.compile(cumsum(1024, 2048), out_idx=[-1])
    torch.testing.assert_close(kernel(x), torch.cumsum(x, dim=1), rtol=1e-4, atol=1e-3)


if __name__ == "__main__":
    main()
