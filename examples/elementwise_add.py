"""Elementwise addition of two matrices: C = A + B.

    A, B and C are (M, N) and row-major.

elementwise_add stages its tiles through shared memory; elementwise_add_sizes takes its sizes from
the tensors; axpby computes alpha * A + beta * B with scalars given at launch.

    tilewright run examples/elementwise_add.py
    tilewright run examples/elementwise_add.py --set M=100 --set N=77 --set dtype=float16
    tilewright run examples/elementwise_add.py:elementwise_add_sizes --set M=64 --set N=200
    tilewright run examples/elementwise_add.py:axpby --set alpha=2.0 --set beta=-0.5
"""

import tilelang
import tilelang.language as T


@tilelang.jit
def elementwise_add(A, B, M=512, N=512, block_M=32, block_N=128, threads=128, dtype=T.float32):
    A: T.Tensor[[M, N], dtype]
    B: T.Tensor[[M, N], dtype]
    C = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_N), dtype)
        B_shared = T.alloc_shared((block_M, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), dtype)

        T.copy(A[by * block_M, bx * block_N], A_shared)
        T.copy(B[by * block_M, bx * block_N], B_shared)
        for i, j in T.Parallel(block_M, block_N):
            C_local[i, j] = A_shared[i, j] + B_shared[i, j]
        T.copy(C_local, C[by * block_M, bx * block_N])

    return C


@tilelang.jit
def elementwise_add_sizes(A, B, block_M=32, block_N=64, threads=128, dtype=T.float32):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], dtype]
    B: T.Tensor[[M, N], dtype]
    C = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
        for i, j in T.Parallel(block_M, block_N):
            row = by * block_M + i
            column = bx * block_N + j
            C[row, column] = A[row, column] + B[row, column]

    return C


def axpby(M=256, N=256, block_M=32, block_N=64, threads=128, dtype="float32"):
    @T.prim_func
    def kernel(
        alpha: T.float32,
        beta: T.float32,
        A: T.Tensor((M, N), dtype),
        B: T.Tensor((M, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                row = by * block_M + i
                column = bx * block_N + j
                C[row, column] = alpha * A[row, column] + beta * B[row, column]

    return kernel


def main():
    import torch

    a = torch.randn(1024, 1024, device="cuda")
    b = torch.randn(1024, 1024, device="cuda")
    torch.testing.assert_close(elementwise_add(a, b, M=1024, N=1024), a + b)
    torch.testing.assert_close(elementwise_add_sizes(a, b), a + b)


if __name__ == "__main__":
    main()
