"""Matrix multiplication with the work cut evenly over blocks, tile borders or not (stream-K): C = A @ B.

    A is (M, K), B is (K, N), C is (M, N) in the accumulator's type.

All the K steps of all the tiles form one long line, which is cut into num_blocks equal pieces. A piece
may start or end in the middle of a tile, so a tile may be the sum of several pieces; each piece adds its
part to C atomically. Every block does the same amount of work whatever the number of tiles.
A first launch sets C to zero.

    tilewright run examples/gemm_streamk.py
    tilewright run examples/gemm_streamk.py --set M=100 --set N=90 --set K=200 --set num_blocks=5
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul_streamk(
    M=192,
    N=192,
    K=256,
    block_M=64,
    block_N=64,
    block_K=32,
    num_blocks=8,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    n_tiles = T.ceildiv(N, block_N)
    k_steps = T.ceildiv(K, block_K)
    total_steps = T.ceildiv(M, block_M) * n_tiles * k_steps
    steps_per_block = T.ceildiv(total_steps, num_blocks)
    # A piece of this length touches at most this many tiles.
    max_tiles = T.ceildiv(steps_per_block - 1, k_steps) + 1

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                C[by * block_M + i, bx * block_N + j] = 0

        with T.Kernel(num_blocks, threads=threads) as block_id:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            piece_start = block_id * steps_per_block
            piece_end = T.min(piece_start + steps_per_block, total_steps)
            for t in T.serial(max_tiles):
                tile = piece_start // k_steps + t
                first = T.max(piece_start, tile * k_steps)
                last = T.min(piece_end, (tile + 1) * k_steps)
                if first < last:
                    row = (tile // n_tiles) * block_M
                    column = (tile % n_tiles) * block_N
                    T.clear(C_local)
                    for step in T.Pipelined(first, last, num_stages=num_stages):
                        k = (step % k_steps) * block_K
                        T.copy(A[row, k], A_shared)
                        T.copy(B[k, column], B_shared)
                        T.gemm(A_shared, B_shared, C_local)
                    T.atomic_add(C[row, column], C_local)

    return gemm


def main():
    import torch

    kernel = matmul_streamk(1000, 1000, 4096, 128, 128, 32, num_blocks=132)
    a = torch.randn(1000, 4096, device="cuda", dtype=torch.float16)
    b = torch.randn(4096, 1000, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(kernel(a, b), (a @ b).float(), rtol=1e-2, atol=1e-1)


if __name__ == "__main__":
    main()
