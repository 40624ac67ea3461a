"""Attention backward: the gradients of Q, K and V.

    Q, K, V, O, dO, dK and dV are (batch, heads, seq_len, dim) in dtype, lse is (batch, heads, seq_len)
    and dQ (batch, heads, seq_len, dim), both in the accumulator's type.
    O and lse come from the forward pass (attention_fwd_lse below): lse is the log of each row's sum
    of exp(scale * Q @ K^T), with scale = 1 / sqrt(dim). With
        P = exp(scale * Q @ K^T - lse),        zero where is_causal hides the key
        delta = sum over dim of O * dO,
        dS = P * (dO @ V^T - delta)
    the gradients are dV = P^T @ dO, dK = scale * dS^T @ Q, dQ = scale * dS @ K.

A block owns block_N keys and walks over the queries, so dK and dV stay in registers. Many blocks
contribute to each row of dQ; they add to it atomically. The first launch computes delta and clears dQ.

    tilewright run examples/attention_bwd.py
    tilewright run examples/attention_bwd.py --set is_causal=True --set seq_len=100 --set dim=40
    tilewright run examples/attention_bwd.py:attention_fwd_lse
"""

import math

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-3, -2, -1])
def attention_bwd(
    batch=1,
    heads=2,
    seq_len=128,
    dim=64,
    is_causal=False,
    block_M=64,
    block_N=32,
    num_stages=1,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    softmax_scale = 1.0 / math.sqrt(dim)
    log2_e = math.log2(math.e)
    shape = (batch, heads, seq_len, dim)
    q_tiles = T.ceildiv(seq_len, block_M)

    @T.prim_func
    def backward(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        O: T.Tensor(shape, dtype),
        dO: T.Tensor(shape, dtype),
        lse: T.Tensor((batch, heads, seq_len), accum_dtype),
        dQ: T.Tensor(shape, accum_dtype),
        dK: T.Tensor(shape, dtype),
        dV: T.Tensor(shape, dtype),
    ):
        delta = T.alloc_global((batch, heads, seq_len), accum_dtype)

        with T.Kernel(q_tiles, heads, batch, threads=threads) as (bx, by, bz):
            o = T.alloc_fragment((block_M, dim), accum_dtype)
            do = T.alloc_fragment((block_M, dim), accum_dtype)
            row = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(O[bz, by, bx * block_M, 0], o)
            T.copy(dO[bz, by, bx * block_M, 0], do)
            for i, j in T.Parallel(block_M, dim):
                o[i, j] *= do[i, j]
                dQ[bz, by, bx * block_M + i, j] = 0
            T.reduce_sum(o, row, dim=1)
            T.copy(row, delta[bz, by, bx * block_M])

        with T.Kernel(T.ceildiv(seq_len, block_N), heads, batch, threads=threads) as (bx, by, bz):
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            dO_shared = T.alloc_shared((block_M, dim), dtype)
            lse_shared = T.alloc_shared((block_M,), accum_dtype)
            delta_shared = T.alloc_shared((block_M,), accum_dtype)
            dS_shared = T.alloc_shared((block_N, block_M), dtype)
            # Scores are held with the keys as rows, so that dV and dK need no transposed operand.
            p = T.alloc_fragment((block_N, block_M), accum_dtype)
            p_cast = T.alloc_fragment((block_N, block_M), dtype)
            ds = T.alloc_fragment((block_N, block_M), accum_dtype)
            ds_cast = T.alloc_fragment((block_N, block_M), dtype)
            dk = T.alloc_fragment((block_N, dim), accum_dtype)
            dv = T.alloc_fragment((block_N, dim), accum_dtype)
            dq = T.alloc_fragment((block_M, dim), accum_dtype)

            T.copy(K[bz, by, bx * block_N, 0], K_shared)
            T.copy(V[bz, by, bx * block_N, 0], V_shared)
            T.clear(dk)
            T.clear(dv)

            # With is_causal no query before this block's first key sees any of its keys.
            first_tile = (bx * block_N) // block_M if is_causal else 0
            for k in T.Pipelined(first_tile, q_tiles, num_stages=num_stages):
                T.copy(Q[bz, by, k * block_M, 0], Q_shared)
                T.copy(dO[bz, by, k * block_M, 0], dO_shared)
                T.copy(lse[bz, by, k * block_M], lse_shared)
                T.copy(delta[bz, by, k * block_M], delta_shared)

                T.gemm(K_shared, Q_shared, p, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_N, block_M):
                    key = bx * block_N + i
                    query = k * block_M + j
                    last = query if is_causal else seq_len - 1
                    p[i, j] = T.if_then_else(
                        key <= last and key < seq_len and query < seq_len,
                        T.exp2(p[i, j] * (softmax_scale * log2_e) - lse_shared[j] * log2_e),
                        0,
                    )
                T.copy(p, p_cast)
                T.gemm(p_cast, dO_shared, dv, policy=T.GemmWarpPolicy.FullRow)

                T.gemm(V_shared, dO_shared, ds, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_N, block_M):
                    ds_cast[i, j] = p[i, j] * (ds[i, j] - delta_shared[j]) * softmax_scale
                T.gemm(ds_cast, Q_shared, dk, policy=T.GemmWarpPolicy.FullRow)

                T.copy(ds_cast, dS_shared)
                T.gemm(dS_shared, K_shared, dq, transpose_A=True, clear_accum=True)
                for i, j in T.Parallel(block_M, dim):
                    T.atomic_add(dQ[bz, by, k * block_M + i, j], dq[i, j])

            T.copy(dk, dK[bz, by, bx * block_N, 0])
            T.copy(dv, dV[bz, by, bx * block_N, 0])

    return backward


@tilelang.jit(out_idx=[-2, -1])
def attention_fwd_lse(
    batch=1,
    heads=2,
    seq_len=128,
    dim=64,
    is_causal=False,
    block_M=64,
    block_N=64,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    """The forward pass with its row statistics, as the backward pass needs them."""
    softmax_scale = 1.0 / math.sqrt(dim)
    scale = softmax_scale * math.log2(math.e)
    shape = (batch, heads, seq_len, dim)

    @T.prim_func
    def forward(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        O: T.Tensor(shape, dtype),
        lse: T.Tensor((batch, heads, seq_len), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            acc_s = T.alloc_fragment((block_M, block_N), accum_dtype)
            probs = T.alloc_fragment((block_M, block_N), dtype)
            acc_o = T.alloc_fragment((block_M, dim), accum_dtype)
            row_max = T.alloc_fragment((block_M,), accum_dtype)
            row_max_prev = T.alloc_fragment((block_M,), accum_dtype)
            row_sum = T.alloc_fragment((block_M,), accum_dtype)
            total = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(Q[bz, by, bx * block_M, 0], Q_shared)
            T.clear(acc_o)
            T.clear(total)
            T.fill(row_max, -T.infinity(accum_dtype))
            for k in T.serial(T.ceildiv(seq_len, block_N)):
                T.copy(K[bz, by, k * block_N, 0], K_shared)
                T.copy(V[bz, by, k * block_N, 0], V_shared)
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_M, block_N):
                    last = T.min(bx * block_M + i, seq_len - 1) if is_causal else seq_len - 1
                    acc_s[i, j] = T.if_then_else(k * block_N + j <= last, acc_s[i, j], -T.infinity(accum_dtype))
                T.copy(row_max, row_max_prev)
                T.reduce_max(acc_s, row_max, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    acc_s[i, j] = T.exp2((acc_s[i, j] - row_max[i]) * scale)
                T.reduce_sum(acc_s, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * T.exp2((row_max_prev[i] - row_max[i]) * scale) + row_sum[i]
                for i, j in T.Parallel(block_M, dim):
                    acc_o[i, j] *= T.exp2((row_max_prev[i] - row_max[i]) * scale)
                T.copy(acc_s, probs)
                T.gemm(probs, V_shared, acc_o)

            for i, j in T.Parallel(block_M, dim):
                O[bz, by, bx * block_M + i, j] = acc_o[i, j] / total[i]
            for i in T.Parallel(block_M):
                lse[bz, by, bx * block_M + i] = row_max[i] * softmax_scale + T.log(total[i])

    return forward


def main():
    import torch

    q, k, v = (torch.randn(2, 8, 512, 64, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3))
    grad = torch.randn_like(q)
    torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).backward(grad)
    output, lse = attention_fwd_lse(2, 8, 512, 64, True)(q, k, v)
    dq, dk, dv = attention_bwd(2, 8, 512, 64, True)(q, k, v, output, grad, lse)
    torch.testing.assert_close(dq.half(), q.grad, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(dk, k.grad, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(dv, v.grad, rtol=2e-2, atol=2e-2)


if __name__ == "__main__":
    main()
