"""Attention for one new token, with the keys split over blocks and the parts merged afterwards.

    Q and O are (batch, heads, dim), K and V (batch, seq_kv, kv_heads, dim);
    O = softmax(Q @ K^T / sqrt(dim)) @ V, where query head h reads key head h // (heads / kv_heads).

A single query gives too little work for one block a head, so num_split blocks share the keys of a
head. Each writes its partial result, normalised over its own keys, with the base-2 logarithm of
its sum. The second launch weighs the parts by those sums. A split that gets no keys
writes a sum of zero and weighs nothing. All the query heads that share a key head are the rows
of one gemm; rows past the group are empty.

    tilewright run examples/attention_decode.py
    tilewright run examples/attention_decode.py --set seq_kv=333 --set num_split=5 --set kv_heads=4
"""

import math

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def attention_decode(
    batch=2,
    heads=16,
    kv_heads=2,
    seq_kv=512,
    dim=64,
    num_split=4,
    block_H=16,
    block_N=64,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    group = heads // kv_heads
    assert heads % kv_heads == 0, "every key head serves the same number of query heads"
    scale = 1.0 / math.sqrt(dim) * math.log2(math.e)
    blocks_per_group = T.ceildiv(group, block_H)
    tiles = T.ceildiv(seq_kv, block_N)
    tiles_per_split = T.ceildiv(tiles, num_split)

    @T.macro
    def partial_attention(Q, K, V, part, part_lse):
        """One block: some query heads of one key head against one stretch of the keys."""
        with T.Kernel(kv_heads * blocks_per_group, num_split, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_H, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            acc_s = T.alloc_fragment((block_H, block_N), accum_dtype)
            probs = T.alloc_fragment((block_H, block_N), dtype)
            acc_o = T.alloc_fragment((block_H, dim), accum_dtype)
            row_max = T.alloc_fragment((block_H,), accum_dtype)
            row_max_prev = T.alloc_fragment((block_H,), accum_dtype)
            row_sum = T.alloc_fragment((block_H,), accum_dtype)
            total = T.alloc_fragment((block_H,), accum_dtype)

            kv_head = bx // blocks_per_group
            first_row = (bx % blocks_per_group) * block_H
            first_head = kv_head * group + first_row
            first_tile = by * tiles_per_split
            last_tile = T.min(first_tile + tiles_per_split, tiles)

            # Rows past the group belong to other key heads: they are computed and never stored.
            T.copy(Q[bz, first_head, 0], Q_shared)
            T.clear(acc_o)
            T.clear(total)
            T.fill(row_max, -T.infinity(accum_dtype))

            for k in T.Pipelined(first_tile, last_tile, num_stages=num_stages):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, kv_head, :], K_shared)
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_H, block_N):
                    acc_s[i, j] = T.if_then_else(k * block_N + j < seq_kv, acc_s[i, j], -T.infinity(accum_dtype))
                T.copy(row_max, row_max_prev)
                T.reduce_max(acc_s, row_max, dim=1, clear=False)
                for i, j in T.Parallel(block_H, block_N):
                    acc_s[i, j] = T.exp2((acc_s[i, j] - row_max[i]) * scale)
                T.reduce_sum(acc_s, row_sum, dim=1)
                for i in T.Parallel(block_H):
                    total[i] = total[i] * T.exp2((row_max_prev[i] - row_max[i]) * scale) + row_sum[i]
                for i, j in T.Parallel(block_H, dim):
                    acc_o[i, j] *= T.exp2((row_max_prev[i] - row_max[i]) * scale)
                T.copy(acc_s, probs)
                T.copy(V[bz, k * block_N : (k + 1) * block_N, kv_head, :], V_shared)
                T.gemm(probs, V_shared, acc_o)

            for i, j in T.Parallel(block_H, dim):
                if first_row + i < group:
                    part[bz, first_head + i, by, j] = T.if_then_else(total[i] > 0, acc_o[i, j] / total[i], 0)
            for i in T.Parallel(block_H):
                if first_row + i < group:
                    part_lse[bz, first_head + i, by] = T.if_then_else(
                        total[i] > 0, row_max[i] * scale + T.log2(total[i]), -T.infinity(accum_dtype)
                    )

    @T.macro
    def combine(part, part_lse, O):
        """One block for each head: the mean of the parts, weighed by their sums."""
        with T.Kernel(heads, batch, threads=threads) as (bx, by):
            values = T.alloc_fragment((num_split, dim), accum_dtype)
            lse = T.alloc_fragment((num_split,), accum_dtype)
            weight = T.alloc_fragment((num_split,), accum_dtype)
            largest = T.alloc_fragment((1,), accum_dtype)
            weight_sum = T.alloc_fragment((1,), accum_dtype)
            merged = T.alloc_fragment((dim,), accum_dtype)

            T.copy(part[by, bx, 0, 0], values)
            T.copy(part_lse[by, bx, 0], lse)
            T.reduce_max(lse, largest, dim=0)
            for s in T.Parallel(num_split):
                weight[s] = T.exp2(lse[s] - largest[0])
            T.reduce_sum(weight, weight_sum, dim=0)
            for s, j in T.Parallel(num_split, dim):
                values[s, j] *= weight[s]
            T.reduce_sum(values, merged, dim=0)
            for j in T.Parallel(dim):
                O[by, bx, j] = merged[j] / weight_sum[0]

    @T.prim_func
    def decode(
        Q: T.Tensor((batch, heads, dim), dtype),
        K: T.Tensor((batch, seq_kv, kv_heads, dim), dtype),
        V: T.Tensor((batch, seq_kv, kv_heads, dim), dtype),
        O: T.Tensor((batch, heads, dim), dtype),
    ):
        part = T.alloc_global((batch, heads, num_split, dim), accum_dtype)
        part_lse = T.alloc_global((batch, heads, num_split), accum_dtype)
        partial_attention(Q, K, V, part, part_lse)
        combine(part, part_lse, O)

    return decode


def main():
    import torch

    q = torch.randn(4, 32, 128, device="cuda", dtype=torch.float16)
    k, v = (torch.randn(4, 8192, 8, 128, device="cuda", dtype=torch.float16) for _ in range(2))
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.unsqueeze(2),
        k.transpose(1, 2).repeat_interleave(4, dim=1),
        v.transpose(1, 2).repeat_interleave(4, dim=1),
    )
    kernel = attention_decode(4, 32, 8, 8192, 128, num_split=16, block_N=128)
    torch.testing.assert_close(kernel(q, k, v), expected.squeeze(2), rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
