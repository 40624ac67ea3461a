"""Grouped matrix multiplication: the rows of A are cut into groups, each with its own weights.

    A is (rows, K) with the groups one below the other, B is (groups, K, N), C is (rows, N);
    the rows of group g are multiplied by B[g].

Group sizes are any non-negative numbers. The grid has one row of blocks for each tile of each
group. In grouped_matmul the sizes are known when the kernel is built, so the group of a tile is
a chain of comparisons that ordinary Python builds; in grouped_matmul_ragged they come as a tensor
of offsets when it runs.

    tilewright run examples/grouped_gemm.py
    tilewright run examples/grouped_gemm.py --set "group_sizes=(5, 0, 130, 64)" --set N=72 --set K=50
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def grouped_matmul(
    group_sizes=(63, 77, 111, 129),
    N=128,
    K=128,
    block_M=64,
    block_N=64,
    block_K=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
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
    def grouped_gemm(
        A: T.Tensor((rows, K), dtype),
        B: T.Tensor((groups, K, N), dtype),
        C: T.Tensor((rows, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), tile_ends[-1], threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            group = of_group(by, list(range(groups)))
            m_start = of_group(by, row_starts) + (by - of_group(by, tile_starts)) * block_M
            m_end = of_group(by, row_ends)

            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[m_start, k * block_K], A_shared)
                T.copy(B[group, k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)

            # A tile may reach into the rows of the next group; those rows are not its own to write.
            for i, j in T.Parallel(block_M, block_N):
                if m_start + i < m_end:
                    C[m_start + i, bx * block_N + j] = C_local[i, j]

    return grouped_gemm


@tilelang.jit(out_idx=[-1])
def grouped_matmul_ragged(
    rows=380,
    groups=4,
    N=128,
    K=128,
    max_group=192,
    block_M=64,
    block_N=64,
    block_K=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    """Group g owns the rows offsets[g] to offsets[g + 1], at most max_group of them."""

    @T.prim_func
    def grouped_gemm(
        A: T.Tensor((rows, K), dtype),
        B: T.Tensor((groups, K, N), dtype),
        offsets: T.Tensor((groups + 1,), "int32"),
        C: T.Tensor((rows, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(max_group, block_M), groups, threads=threads) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            m_start = offsets[bz] + by * block_M
            m_end = offsets[bz + 1]
            if m_start < m_end:
                T.clear(C_local)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                    T.copy(A[m_start, k * block_K], A_shared)
                    T.copy(B[bz, k * block_K, bx * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                for i, j in T.Parallel(block_M, block_N):
                    if m_start + i < m_end:
                        C[m_start + i, bx * block_N + j] = C_local[i, j]

    return grouped_gemm


def main():
    import torch

    sizes = (63, 77, 111, 129)
    a = torch.randn(sum(sizes), 256, device="cuda", dtype=torch.float16)
    b = torch.randn(len(sizes), 256, 512, device="cuda", dtype=torch.float16)
    expected = torch.cat([part @ b[g] for g, part in enumerate(torch.split(a, sizes))])
    kernel = grouped_matmul(sizes, N=512, K=256)
    torch.testing.assert_close(kernel(a, b), expected, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
