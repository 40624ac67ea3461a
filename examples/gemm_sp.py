"""Matrix multiplication with a sparse left factor: of four neighbours along K two are stored.

    A is (M, K / 2), or (K / 2, M) with trans_A: the stored elements.
    E is (M, K / n), or (K / n, M) with trans_E: where they belong, four bits for each group of four.
    B is (K, N), or (N, K) with trans_B; C is (M, N).

An integer of `meta_dtype` tells of n elements along K, as many as it has bits, with the first group's
places lowest. Of float32 one of two neighbours is stored, and n is half as many. Where the GPU has
sparse matrix instructions, they take half the time of dense ones.

    tilewright run examples/gemm_sp.py
    tilewright run examples/gemm_sp.py --set M=300 --set N=200 --set K=96 --set trans_B=True
    tilewright run examples/gemm_sp.py --set dtype=int8 --set accum_dtype=int32 --set meta_dtype=int32
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul_sp(
    M=1024,
    N=1024,
    K=1024,
    block_M=128,
    block_N=128,
    block_K=64,
    num_stages=3,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
    meta_dtype="int16",
    trans_A=False,
    trans_B=False,
    trans_E=False,
):
    n = T.DataType(meta_dtype).bits
    if dtype == "float32":
        n = n // 2
    stored_K, meta_K = K // 2, T.ceildiv(K, n)
    stored, meta = block_K // 2, block_K // n

    A_shape = (stored_K, M) if trans_A else (M, stored_K)
    B_shape = (N, K) if trans_B else (K, N)
    E_shape = (meta_K, M) if trans_E else (M, meta_K)
    A_tile = (stored, block_M) if trans_A else (block_M, stored)
    B_tile = (block_N, block_K) if trans_B else (block_K, block_N)
    E_tile = (meta, block_M) if trans_E else (block_M, meta)

    @T.prim_func
    def gemm_sp(
        A: T.Tensor(A_shape, dtype),
        E: T.Tensor(E_shape, meta_dtype),
        B: T.Tensor(B_shape, dtype),
        C: T.Tensor((M, N), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared(A_tile, dtype)
            E_shared = T.alloc_shared(E_tile, meta_dtype)
            B_shared = T.alloc_shared(B_tile, dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            # Neighbouring blocks share panels of A and B, so walking the grid in panels keeps them in L2.
            T.use_swizzle(panel_size=16)

            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if trans_A:
                    T.copy(A[k * stored, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, k * stored], A_shared)
                if trans_E:
                    T.copy(E[k * meta, by * block_M], E_shared)
                else:
                    T.copy(E[by * block_M, k * meta], E_shared)
                if trans_B:
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm_sp(
                    A_shared,
                    E_shared,
                    B_shared,
                    C_local,
                    transpose_A=trans_A,
                    transpose_E=trans_E,
                    transpose_B=trans_B,
                )

            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm_sp


def main():
    import torch

    M = N = K = 4096
    kernel = matmul_sp(M, N, K)
    # Of each four the first and the last: places 0 and 3, the second above the first.
    stored = torch.randn(M, K // 2, device="cuda", dtype=torch.float16)
    places = torch.full((M, K // 16), 0xCCCC - 0x10000, device="cuda", dtype=torch.int16)
    a = torch.zeros(M, K // 4, 4, device="cuda", dtype=torch.float16)
    a[:, :, 0], a[:, :, 3] = stored[:, 0::2], stored[:, 1::2]
    b = torch.randn(K, N, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(
        kernel(stored, places, b), (a.view(M, K) @ b).float(), rtol=1e-2, atol=1e-2
    )

    latency = kernel.get_profiler().do_bench()
    print(f"{latency:.3f} ms, {2 * M * N * K / latency * 1e-9:.1f} TFLOP/s")


if __name__ == "__main__":
    main()
