"""Matrix multiplication by a fixed set of resident blocks: C = A @ B.

    A is (M, K), B is (K, N), C is (M, N).

Instead of one block for each tile of C, num_blocks blocks (one for each SM, say) walk over all the
tiles. T.Persistent hands out the tiles in an order that keeps neighbouring blocks on the same
panels; matmul_waves states a plain row-major walk by hand.

    tilewright run examples/gemm_persistent.py
    tilewright run examples/gemm_persistent.py --set M=200 --set N=150 --set K=72 --set num_blocks=3
    tilewright run examples/gemm_persistent.py:matmul_waves
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul_persistent(
    M=256,
    N=256,
    K=256,
    block_M=64,
    block_N=64,
    block_K=32,
    num_blocks=6,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    m_blocks = T.ceildiv(M, block_M)
    n_blocks = T.ceildiv(N, block_N)

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(num_blocks, threads=threads) as block_id:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            for by, bx in T.Persistent([m_blocks, n_blocks], num_blocks, block_id, group_size=4):
                T.clear(C_local)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                    T.copy(A[by * block_M, k * block_K], A_shared)
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


@tilelang.jit(out_idx=[-1])
def matmul_waves(
    M=256,
    N=256,
    K=256,
    block_M=64,
    block_N=64,
    block_K=32,
    num_blocks=6,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    """Tile number t belongs to block t mod num_blocks; the last wave may leave some blocks idle."""
    n_blocks = T.ceildiv(N, block_N)
    tiles = T.ceildiv(M, block_M) * n_blocks
    waves = T.ceildiv(tiles, num_blocks)

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(num_blocks, threads=threads) as block_id:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            for wave in T.serial(waves):
                tile = wave * num_blocks + block_id
                if tile < tiles:
                    by = tile // n_blocks
                    bx = tile % n_blocks
                    T.clear(C_local)
                    for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                        T.copy(A[by * block_M, k * block_K], A_shared)
                        T.copy(B[k * block_K, bx * block_N], B_shared)
                        T.gemm(A_shared, B_shared, C_local)
                    T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


def main():
    import torch

    sms = torch.cuda.get_device_properties(0).multi_processor_count
    a = torch.randn(4096, 2048, device="cuda", dtype=torch.float16)
    b = torch.randn(2048, 4096, device="cuda", dtype=torch.float16)
    for factory in (matmul_persistent, matmul_waves):
        kernel = factory(4096, 4096, 2048, 128, 128, 64, num_blocks=sms)
        torch.testing.assert_close(kernel(a, b), a @ b, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
