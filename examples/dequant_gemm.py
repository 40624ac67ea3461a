"""Matrix multiplication with 4-bit weights that are unpacked on the way: C = A @ W^T.

    A is (M, K) in dtype. W is (N, K) and arrives packed as B (N, K / 2) of bytes: the low half of
    byte k is column 2k, the high half column 2k + 1, and a half h stands for h - 8.
    scales is (N, K / group) in dtype: W[n, k] = (h - 8) * scales[n, k // group].
    C is (M, N) in dtype.

The packed tile goes to shared memory as it is; it is unpacked, scaled and stored as an ordinary
tile, which a normal gemm then reads.

    tilewright run examples/dequant_gemm.py
    tilewright run examples/dequant_gemm.py --set M=50 --set N=90 --set K=160
    tilewright run examples/dequant_gemm.py:dequant_gemv --set N=70 --set K=96
"""

import tilelang
import tilelang.language as T


@T.macro
def unpack(byte, column):
    """The signed value of the half byte that holds this column."""
    half = (T.cast(byte, "int32") >> ((column % 2) * 4)) & 0xF
    return half - 8


@tilelang.jit(out_idx=[-1])
def dequant_matmul(
    M=128,
    N=256,
    K=256,
    group=32,
    block_M=64,
    block_N=64,
    block_K=64,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
    storage_dtype="uint8",
):
    assert K % 2 == 0 and block_K % 2 == 0, "two columns of weights share a byte"

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K // 2), storage_dtype),
        scales: T.Tensor((N, T.ceildiv(K, group)), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_packed = T.alloc_shared((block_N, block_K // 2), storage_dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * (block_K // 2)], B_packed)
                for i, j in T.Parallel(block_N, block_K):
                    value = unpack(B_packed[i, j // 2], j)
                    scale = scales[bx * block_N + i, (k * block_K + j) // group]
                    B_shared[i, j] = T.cast(value, dtype) * scale
                # Columns past K unpack to something, but A is zero there.
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return kernel


@tilelang.jit(out_idx=[-1])
def dequant_gemv(
    N=256,
    K=512,
    group=32,
    block_N=8,
    reduce_threads=16,
    dtype="float16",
    accum_dtype="float32",
    storage_dtype="uint8",
):
    """One row of A: C[n] = sum over k of A[k] * W[n, k], by threads, two weights for each byte read."""
    assert K % 2 == 0 and group % 2 == 0, "two columns of weights share a byte and its scale"

    @T.prim_func
    def kernel(
        A: T.Tensor((K,), dtype),
        B: T.Tensor((N, K // 2), storage_dtype),
        scales: T.Tensor((N, T.ceildiv(K, group)), dtype),
        C: T.Tensor((N,), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), threads=(block_N, reduce_threads)) as bn:
            row = bn * block_N + T.get_thread_binding(0)
            tk = T.get_thread_binding(1)
            partial = T.alloc_local((1,), accum_dtype)
            total = T.alloc_local((1,), accum_dtype)

            T.clear(partial)
            for step in T.serial(T.ceildiv(K // 2, reduce_threads)):
                pair = step * reduce_threads + tk
                byte = B[row, pair]
                scale = T.cast(scales[row, (pair * 2) // group], accum_dtype)
                for v in T.unroll(2):
                    weight = T.cast(unpack(byte, v), accum_dtype) * scale
                    partial[0] += T.cast(A[pair * 2 + v], accum_dtype) * weight

            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.cast(0, accum_dtype)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), partial[0], True, total[0], tk, dtype="handle"))
            if tk == 0:
                C[row] = total[0]

    return kernel


def main():
    import torch

    M, N, K, group = 128, 1024, 1024, 32
    a = torch.randn(M, K, device="cuda", dtype=torch.float16)
    b = torch.randint(0, 256, (N, K // 2), device="cuda", dtype=torch.uint8)
    scales = torch.rand(N, K // group, device="cuda", dtype=torch.float16) * 0.1
    halves = torch.stack((b & 15, b >> 4), dim=-1).reshape(N, K).to(torch.float16) - 8
    weights = halves * scales.repeat_interleave(group, dim=1)
    kernel = dequant_matmul(M, N, K, group)
    torch.testing.assert_close(kernel(a, b, scales), a @ weights.T, rtol=1e-2, atol=1e-1)


if __name__ == "__main__":
    main()
