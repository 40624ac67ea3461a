"""Batched matrix multiplication: C[b] = A[b] @ B[b].

    A is (batch, M, K), B is (batch, K, N), C is (batch, M, N).

The batch is the third grid dimension. The kernel is written in the eager style: the tensors are
annotated in the body and the output is returned. The shared tiles are stored with a hand-written
XOR swizzle (T.annotate_layout), which changes where elements live but never what they are.

    tilewright run examples/batched_gemm.py
    tilewright run examples/batched_gemm.py --set batch=3 --set M=70 --set N=50 --set K=90
    tilewright run examples/batched_gemm.py:batched_matmul_shared_b --set M=64 --set N=64 --set K=64 --set batch=2
"""

import tilelang
import tilelang.language as T


def xor_swizzle(rows, columns, chunk=8):
    """Exchanges the chunks of a row by its number, so that a column of chunks meets all the banks.

    The number of chunks in a row must be a power of two for the exchange to stay inside the row.
    """
    chunks = columns // chunk
    assert columns % chunk == 0 and chunks & (chunks - 1) == 0, "a row must be a power of two of chunks"
    return T.Layout((rows, columns), lambda i, j: (i, ((j // chunk) ^ (i % chunks)) * chunk + j % chunk))


@tilelang.jit
def batched_matmul(
    A,
    B,
    batch=4,
    M=128,
    N=128,
    K=128,
    block_M=64,
    block_N=64,
    block_K=32,
    num_stages=2,
    dtype=T.float16,
    accum_dtype=T.float32,
):
    A: T.Tensor[[batch, M, K], dtype]
    B: T.Tensor[[batch, K, N], dtype]
    C = T.empty((batch, M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), batch, threads=128) as (bx, by, bz):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
        T.annotate_layout(
            {
                A_shared: xor_swizzle(block_M, block_K),
                B_shared: xor_swizzle(block_K, block_N),
            }
        )

        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
            T.copy(A[bz, by * block_M, k * block_K], A_shared)
            T.copy(B[bz, k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local, policy=T.GemmWarpPolicy.Square)
        T.copy(C_local, C[bz, by * block_M, bx * block_N])

    return C


@tilelang.jit
def batched_matmul_shared_b(A, B, block_M=64, block_N=64, block_K=32, dtype=T.float16, accum_dtype=T.float32):
    """One B for the whole batch; the sizes are read off the tensors when it is called."""
    batch, M, N, K = T.const("batch, M, N, K")
    A: T.Tensor[[batch, M, K], dtype]
    B: T.Tensor[[K, N], dtype]
    C = T.empty((batch, M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), batch, threads=128) as (bx, by, bz):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[bz, by * block_M : (by + 1) * block_M, k * block_K : (k + 1) * block_K], A_shared)
            T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[bz, by * block_M, bx * block_N])

    return C


def main():
    import torch

    a = torch.randn(8, 512, 256, device="cuda", dtype=torch.float16)
    b = torch.randn(8, 256, 512, device="cuda", dtype=torch.float16)
    c = batched_matmul(a, b, batch=8, M=512, N=512, K=256)
    torch.testing.assert_close(c, torch.bmm(a, b), rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
