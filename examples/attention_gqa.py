"""Attention forward with grouped queries: several query heads share one key and value head.

    Q and O are (batch, seq_q, heads, dim), K and V (batch, seq_kv, heads / groups, dim),
    lse is (batch, heads, seq_q) in the accumulator's type;
    O = softmax(Q @ K^T / sqrt(dim)) @ V, where query head h reads key head h // groups,
    lse = log of the sum of exp(Q @ K^T / sqrt(dim)) over the visible keys.

The queries are the last seq_q positions of the sequence: with is_causal, query i sees the keys up to
i + seq_kv - seq_q. lse is what a backward pass or a merge of partial results needs.

    tilewright run examples/attention_gqa.py
    tilewright run examples/attention_gqa.py --set is_causal=True --set groups=2
    tilewright run examples/attention_gqa.py --set seq_q=70 --set seq_kv=150 --set is_causal=True
"""

import math

import tilelang
import tilelang.language as T


def tile_configs():
    return [
        dict(block_M=block_M, block_N=block_N, num_stages=num_stages, threads=threads)
        for block_M in (64, 128)
        for block_N in (64, 128)
        for num_stages in (1, 2)
        for threads in (128, 256)
    ]


@tilelang.autotune(configs=tile_configs(), warmup=10, rep=20)
@tilelang.jit(out_idx=[-2, -1])
def gqa_attention(
    batch=1,
    heads=8,
    groups=4,
    seq_q=128,
    seq_kv=128,
    dim=64,
    is_causal=False,
    block_M=64,
    block_N=64,
    num_stages=1,
    threads=128,
    dtype="bfloat16",
    accum_dtype="float32",
):
    assert heads % groups == 0, "every key head serves the same number of query heads"
    assert not is_causal or seq_kv >= seq_q, "a causal query must see at least one key"
    kv_heads = heads // groups
    past = seq_kv - seq_q
    softmax_scale = 1.0 / math.sqrt(dim)
    scale = softmax_scale * math.log2(math.e)
    ln_2 = math.log(2.0)

    @T.prim_func
    def attention(
        Q: T.Tensor((batch, seq_q, heads, dim), dtype),
        K: T.Tensor((batch, seq_kv, kv_heads, dim), dtype),
        V: T.Tensor((batch, seq_kv, kv_heads, dim), dtype),
        O: T.Tensor((batch, seq_q, heads, dim), dtype),
        lse: T.Tensor((batch, heads, seq_q), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(seq_q, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            O_shared = T.alloc_shared((block_M, dim), dtype)
            acc_s = T.alloc_fragment((block_M, block_N), accum_dtype)
            probs = T.alloc_fragment((block_M, block_N), dtype)
            acc_o = T.alloc_fragment((block_M, dim), accum_dtype)
            row_max = T.alloc_fragment((block_M,), accum_dtype)
            row_max_prev = T.alloc_fragment((block_M,), accum_dtype)
            row_sum = T.alloc_fragment((block_M,), accum_dtype)
            denominator = T.alloc_fragment((block_M,), accum_dtype)

            kv_head = by // groups
            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.clear(acc_o)
            T.clear(denominator)
            T.fill(row_max, -T.infinity(accum_dtype))

            tiles = T.ceildiv(seq_kv, block_N)
            if is_causal:
                tiles = T.min(tiles, T.ceildiv((bx + 1) * block_M + past, block_N))

            for k in T.Pipelined(tiles, num_stages=num_stages):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, kv_head, :], K_shared)
                T.gemm(
                    Q_shared,
                    K_shared,
                    acc_s,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullRow,
                    clear_accum=True,
                )
                for i, j in T.Parallel(block_M, block_N):
                    last = T.min(bx * block_M + i + past, seq_kv - 1) if is_causal else seq_kv - 1
                    acc_s[i, j] = T.if_then_else(k * block_N + j <= last, acc_s[i, j], -T.infinity(accum_dtype))

                T.copy(row_max, row_max_prev)
                T.reduce_max(acc_s, row_max, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    acc_s[i, j] = T.exp2((acc_s[i, j] - row_max[i]) * scale)
                T.reduce_sum(acc_s, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    denominator[i] = denominator[i] * T.exp2((row_max_prev[i] - row_max[i]) * scale) + row_sum[i]
                for i, j in T.Parallel(block_M, dim):
                    acc_o[i, j] *= T.exp2((row_max_prev[i] - row_max[i]) * scale)

                T.copy(acc_s, probs)
                T.copy(V[bz, k * block_N : (k + 1) * block_N, kv_head, :], V_shared)
                T.gemm(probs, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)

            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] /= denominator[i]
            T.copy(acc_o, O_shared)
            T.copy(O_shared, O[bz, bx * block_M : (bx + 1) * block_M, by, :])
            for i in T.Parallel(block_M):
                lse[bz, by, bx * block_M + i] = row_max[i] * softmax_scale + T.log2(denominator[i]) * ln_2

    return attention


def main():
    import torch

    q = torch.randn(2, 512, 32, 128, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(2, 512, 8, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.transpose(1, 2),
        k.transpose(1, 2).repeat_interleave(4, dim=1),
        v.transpose(1, 2).repeat_interleave(4, dim=1),
        is_causal=True,
    )
    output, _ = gqa_attention(2, 32, 4, 512, 512, 128, is_causal=True)(q, k, v)
    torch.testing.assert_close(output.transpose(1, 2), expected, rtol=2e-2, atol=2e-2)


if __name__ == "__main__":
    main()
