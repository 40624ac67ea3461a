"""Transposition of a matrix: B[j, i] = A[i, j].

    A is (M, N), B is (N, M), both row-major.

A tile is read row by row and written row by row, so both sides of the transfer are coalesced; the
turn happens in shared memory. The tile has one spare column (T.Layout), which spreads a column
over all the banks.

    tilewright run examples/transpose.py
    tilewright run examples/transpose.py --set M=100 --set N=77 --set dtype=int8
"""

import tilewright as tilelang
import tilewright.language as T


@tilelang.jit(out_idx=[-1])
def transpose(M=512, N=512, block_M=64, block_N=64, threads=128, dtype="float16"):
    @T.prim_func
    def kernel(A: T.Tensor((M, N), dtype), B: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            tile = T.alloc_shared((block_M, block_N), dtype)
            T.annotate_layout({tile: T.Layout((block_M, block_N), lambda i, j: i * (block_N + 1) + j)})

            T.copy(A[by * block_M, bx * block_N], tile)
            for j, i in T.Parallel(block_N, block_M):
                B[bx * block_N + j, by * block_M + i] = tile[i, j]

    return kernel


def main():
    import torch

    a = torch.randn(4096, 2048, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(transpose(4096, 2048)(a), a.T.contiguous())


if __name__ == "__main__":
    main()
