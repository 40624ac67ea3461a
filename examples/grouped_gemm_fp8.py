"""Grouped FP8 matrix multiplication: the rows of A are cut into groups, each with its own weights.

    A is (rows, K) with the groups one below the other, B is (groups, N, K), both fp8; C is (rows, N);
    the rows of group g are multiplied by B[g]^T.
    scale_A is (K / 128, rows): one scale for 128 neighbours of a row of A.
    scale_B is (groups, N / 128, K / 128): one scale for each square of 128 x 128 elements of B.

Group sizes are any non-negative numbers. The grid has one row of blocks for each tile of each group,
and the group of a tile is a chain of comparisons that ordinary Python builds, as in grouped_gemm.py.
The product of each K tile is scaled and added to a float32 sum, as in fp8_gemm_blockwise.py.

    tilewright run examples/grouped_gemm_fp8.py
    tilewright run examples/grouped_gemm_fp8.py --set "group_sizes=(5, 0, 130, 64)" --set N=72 --set K=200
    tilewright compile examples/grouped_gemm_fp8.py --target sm_90a --explain schedule
"""

import tilelang
import tilelang.language as T

GROUP = 128


@tilelang.jit(out_idx=[-1])
def grouped_matmul_fp8(
    group_sizes=(64, 76, 112, 132),
    N=256,
    K=256,
    block_M=128,
    block_N=128,
    num_stages=2,
    threads=256,
    dtype="float8_e4m3fn",
    out_dtype="bfloat16",
):
    assert GROUP % block_N == 0, "the columns of a block lie in one square of B"
    groups_k = T.ceildiv(K, GROUP)
    groups_n = T.ceildiv(N, GROUP)
    groups = len(group_sizes)
    rows = sum(group_sizes)
    row_ends = [sum(group_sizes[: g + 1]) for g in range(groups)]
    row_starts = [end - size for end, size in zip(row_ends, group_sizes)]
    tiles = [(size + block_M - 1) // block_M for size in group_sizes]
    tile_ends = [sum(tiles[: g + 1]) for g in range(groups)]
    tile_starts = [end - count for end, count in zip(tile_ends, tiles)]

    def of_group(tile, table):
        """table[g] for the group g that tile number `tile` belongs to."""
        value = table[-1]
        for end, entry in reversed(list(zip(tile_ends, table))[:-1]):
            value = T.if_then_else(tile < end, entry, value)
        return value

    @T.prim_func
    def grouped_gemm_fp8(
        A: T.Tensor((rows, K), dtype),
        B: T.Tensor((groups, N, K), dtype),
        scale_A: T.Tensor((groups_k, rows), "float32"),
        scale_B: T.Tensor((groups, groups_n, groups_k), "float32"),
        C: T.Tensor((rows, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), tile_ends[-1], threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, GROUP), dtype)
            B_shared = T.alloc_shared((block_N, GROUP), dtype)
            rows_shared = T.alloc_shared((block_M,), "float32")
            square_shared = T.alloc_shared((groups_k,), "float32")
            C_shared = T.alloc_shared((block_M, block_N), out_dtype)
            scale = T.alloc_fragment((block_M,), "float32")
            C_part = T.alloc_fragment((block_M, block_N), "float32")
            C_sum = T.alloc_fragment((block_M, block_N), "float32")
            T.annotate_layout({C_shared: tilelang.layout.make_swizzled_layout(C_shared)})

            group = of_group(by, list(range(groups)))
            m_start = of_group(by, row_starts) + (by - of_group(by, tile_starts)) * block_M
            m_end = of_group(by, row_ends)

            T.copy(scale_B[group, bx * block_N // GROUP, 0], square_shared)
            T.clear(C_sum)
            for k in T.Pipelined(groups_k, num_stages=num_stages):
                T.copy(A[m_start, k * GROUP], A_shared)
                T.copy(B[group, bx * block_N, k * GROUP], B_shared)
                T.copy(scale_A[k, m_start], rows_shared)
                for i in T.Parallel(block_M):
                    scale[i] = rows_shared[i] * square_shared[k]
                T.gemm(A_shared, B_shared, C_part, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_M, block_N):
                    C_sum[i, j] += C_part[i, j] * scale[i]

            # A tile may reach into the rows of the next group; those rows are not its own to write.
            T.copy(C_sum, C_shared)
            for i, j in T.Parallel(block_M, block_N):
                if m_start + i < m_end:
                    C[m_start + i, bx * block_N + j] = C_shared[i, j]

    return grouped_gemm_fp8


def main():
    import torch

    sizes, N, K = (64, 76, 112, 132), 512, 256
    a = torch.randn(sum(sizes), K, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(len(sizes), N, K, device="cuda").to(torch.float8_e4m3fn)
    scale_a = torch.rand(K // GROUP, sum(sizes), device="cuda") + 0.5
    scale_b = torch.rand(len(sizes), N // GROUP, K // GROUP, device="cuda") + 0.5
    left = a.float() * scale_a.T.repeat_interleave(GROUP, 1)
    right = b.float() * scale_b.repeat_interleave(GROUP, 1).repeat_interleave(GROUP, 2)
    expected = torch.cat([part @ right[g].T for g, part in enumerate(torch.split(left, sizes))])
    kernel = grouped_matmul_fp8(sizes, N, K)
    torch.testing.assert_close(kernel(a, b, scale_a, scale_b).float(), expected, rtol=2e-2, atol=1)


if __name__ == "__main__":
    main()
