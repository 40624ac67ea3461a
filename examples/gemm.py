"""Matrix multiplication, C = op(A) @ op(B), with any mix of transposed operands.

    A is (M, K), or (K, M) with trans_A; B is (K, N), or (N, K) with trans_B; C is (M, N).

A block owns one block_M x block_N tile of C and walks over K, staging tiles of A and B in shared
memory while the accumulator stays in registers. Sizes need not be multiples of the tile: what lies
outside a tensor reads as zero, and what would be written outside it is dropped.

    tilewright run examples/gemm.py
    tilewright run examples/gemm.py --set M=300 --set N=200 --set K=70 --set trans_B=True
    tilewright run examples/gemm.py --set dtype=bfloat16 --set block_K=64
    tilewright run examples/gemm.py:matmul_relu --set M=256 --set N=192 --set K=128
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul(
    M=1024,
    N=1024,
    K=1024,
    block_M=128,
    block_N=128,
    block_K=32,
    num_stages=3,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
    trans_A=False,
    trans_B=False,
):
    A_shape = (K, M) if trans_A else (M, K)
    B_shape = (N, K) if trans_B else (K, N)
    A_tile = (block_K, block_M) if trans_A else (block_M, block_K)
    B_tile = (block_N, block_K) if trans_B else (block_K, block_N)

    @T.prim_func
    def gemm(
        A: T.Tensor(A_shape, dtype),
        B: T.Tensor(B_shape, dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared(A_tile, dtype)
            B_shared = T.alloc_shared(B_tile, dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            # Neighbouring blocks share panels of A and B, so walking the grid in panels keeps them in L2.
            T.use_swizzle(panel_size=16)

            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if trans_A:
                    T.copy(A[k * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                if trans_B:
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=trans_A, transpose_B=trans_B)

            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


@tilelang.jit
def matmul_relu(A, B, block_M=64, block_N=64, block_K=32, dtype=T.float16, accum_dtype=T.float32):
    """The same product followed by max(x, 0), in the eager style: sizes come from the tensors."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], dtype]
    B: T.Tensor[[K, N], dtype]
    C = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)

        for i, j in T.Parallel(block_M, block_N):
            C_local[i, j] = T.max(C_local[i, j], 0)
        T.copy(C_local, C[by * block_M, bx * block_N])

    return C


def main():
    import torch

    kernel = matmul(4096, 4096, 4096)
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    b = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(kernel(a, b), a @ b, rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(matmul_relu(a, b), torch.relu(a @ b), rtol=1e-2, atol=1e-2)

    latency = kernel.get_profiler().do_bench()
    print(f"{latency:.3f} ms, {2 * 4096**3 / latency * 1e-9:.1f} TFLOP/s")


if __name__ == "__main__":
    main()
