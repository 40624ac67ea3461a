"""Attention forward (multi-head), computed tile by tile without storing the score matrix.

    Q, K, V and O are (batch, heads, seq_len, dim);
    O = softmax(Q @ K^T / sqrt(dim)) @ V for each batch entry and head.
    With is_causal, query i sees the keys 0 to i only.

A block owns block_M queries of one head. It walks over the keys, keeps the running maximum and sum
of each row, and rescales what it has whenever the maximum grows. Keys past the end of the sequence
get a score of minus infinity.

    tilewright run examples/attention_fwd.py
    tilewright run examples/attention_fwd.py --set is_causal=True
    tilewright run examples/attention_fwd.py --set seq_len=150 --set dim=40 --set is_causal=True
"""

import math

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def flash_attention(
    batch=1,
    heads=4,
    seq_len=256,
    dim=64,
    is_causal=False,
    block_M=64,
    block_N=64,
    num_stages=1,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    # The exponentials are powers of two, so the scale carries the factor log2(e).
    scale = (1.0 / dim) ** 0.5 * math.log2(math.e)
    shape = (batch, heads, seq_len, dim)

    @T.macro
    def score_tile(Q_shared, K_shared, acc_s, bx, k):
        """acc_s = Q @ K^T, with minus infinity where the query must not see the key."""
        for i, j in T.Parallel(block_M, block_N):
            key = k * block_N + j
            visible = key < seq_len
            if is_causal:
                acc_s[i, j] = T.if_then_else(visible and key <= bx * block_M + i, 0, -T.infinity(acc_s.dtype))
            else:
                acc_s[i, j] = T.if_then_else(visible, 0, -T.infinity(acc_s.dtype))
        T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)

    @T.macro
    def softmax_tile(acc_s, acc_s_cast, row_max, row_max_prev, row_scale, row_sum, logsum):
        """Turns scores into unnormalised probabilities and brings the row statistics up to date."""
        T.copy(row_max, row_max_prev)
        T.reduce_max(acc_s, row_max, dim=1, clear=False)
        for i in T.Parallel(block_M):
            row_scale[i] = T.exp2((row_max_prev[i] - row_max[i]) * scale)
        for i, j in T.Parallel(block_M, block_N):
            acc_s[i, j] = T.exp2(acc_s[i, j] * scale - row_max[i] * scale)
        T.reduce_sum(acc_s, row_sum, dim=1)
        for i in T.Parallel(block_M):
            logsum[i] = logsum[i] * row_scale[i] + row_sum[i]
        T.copy(acc_s, acc_s_cast)

    @T.prim_func
    def attention(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        O: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            acc_s = T.alloc_fragment((block_M, block_N), accum_dtype)
            acc_s_cast = T.alloc_fragment((block_M, block_N), dtype)
            acc_o = T.alloc_fragment((block_M, dim), accum_dtype)
            row_max = T.alloc_fragment((block_M,), accum_dtype)
            row_max_prev = T.alloc_fragment((block_M,), accum_dtype)
            row_scale = T.alloc_fragment((block_M,), accum_dtype)
            row_sum = T.alloc_fragment((block_M,), accum_dtype)
            logsum = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(Q[bz, by, bx * block_M, 0], Q_shared)
            T.clear(acc_o)
            T.clear(logsum)
            T.fill(row_max, -T.infinity(accum_dtype))

            all_tiles = T.ceildiv(seq_len, block_N)
            visible_tiles = T.min(all_tiles, T.ceildiv((bx + 1) * block_M, block_N)) if is_causal else all_tiles

            for k in T.Pipelined(visible_tiles, num_stages=num_stages):
                T.copy(K[bz, by, k * block_N, 0], K_shared)
                score_tile(Q_shared, K_shared, acc_s, bx, k)
                softmax_tile(acc_s, acc_s_cast, row_max, row_max_prev, row_scale, row_sum, logsum)
                for i, j in T.Parallel(block_M, dim):
                    acc_o[i, j] *= row_scale[i]
                T.copy(V[bz, by, k * block_N, 0], V_shared)
                T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)

            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] /= logsum[i]
            T.copy(acc_o, O[bz, by, bx * block_M, 0])

    return attention


def main():
    import torch

    q, k, v = (torch.randn(2, 16, 1024, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    for is_causal in (False, True):
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        kernel = flash_attention(2, 16, 1024, 64, is_causal)
        torch.testing.assert_close(kernel(q, k, v), expected, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
