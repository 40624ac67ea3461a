"""The chunk scan of a Mamba-2 layer: outputs inside a chunk plus what earlier chunks left behind.

    With L = chunk, n_chunks = ceil(seq_len / L), and query head h reading group h // (heads / groups):
    cb      (batch, n_chunks, groups, L, L)     C B^T of each chunk
    x       (batch, seq_len, heads, head_dim)
    dt      (batch, heads, n_chunks, L)         step sizes
    dA_sum  (batch, heads, n_chunks, L)         running sums of dt * A inside a chunk (falling, A < 0), float32
    C       (batch, seq_len, groups, d_state)
    states  (batch, n_chunks, heads, head_dim, d_state)   the state before each chunk
    D       (heads,)
    out     (batch, seq_len, heads, head_dim)

    For position l of chunk c, and with t = c * L + l:
    out[t] = exp(dA_sum[l]) * states @ C[t]
           + sum over s <= l of cb[l, s] * exp(dA_sum[l] - dA_sum[s]) * dt[s] * x[c * L + s]
           + D * x[t]

A block owns block_M positions of one chunk and block_N of the head's channels.

    tilewright run examples/mamba_chunk_scan.py
    tilewright run examples/mamba_chunk_scan.py --set seq_len=200 --set head_dim=40 --set d_state=24
"""

import math

import tilelang
import tilelang.language as T

LOG2_E = math.log2(math.e)


@tilelang.jit(out_idx=[-1])
def chunk_scan(
    batch=1,
    seq_len=256,
    chunk=128,
    groups=1,
    heads=4,
    head_dim=64,
    d_state=32,
    block_M=64,
    block_N=64,
    block_K=64,
    block_S=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    assert heads % groups == 0, "every group serves the same number of heads"
    n_chunks = (seq_len + chunk - 1) // chunk
    heads_per_group = heads // groups
    m_tiles = T.ceildiv(chunk, block_M)

    @T.prim_func
    def scan(
        cb: T.Tensor((batch, n_chunks, groups, chunk, chunk), dtype),
        x: T.Tensor((batch, seq_len, heads, head_dim), dtype),
        dt: T.Tensor((batch, heads, n_chunks, chunk), dtype),
        dA_sum: T.Tensor((batch, heads, n_chunks, chunk), "float32"),
        C: T.Tensor((batch, seq_len, groups, d_state), dtype),
        states: T.Tensor((batch, n_chunks, heads, head_dim, d_state), dtype),
        D: T.Tensor((heads,), dtype),
        out: T.Tensor((batch, seq_len, heads, head_dim), dtype),
    ):
        with T.Kernel(heads, m_tiles * T.ceildiv(head_dim, block_N), batch * n_chunks, threads=threads) as (bh, bt, bc):
            cb_tile = T.alloc_fragment((block_M, block_K), accum_dtype)
            cb_cast = T.alloc_fragment((block_M, block_K), dtype)
            x_tile = T.alloc_shared((block_K, block_N), dtype)
            C_tile = T.alloc_shared((block_M, block_S), dtype)
            state_tile = T.alloc_shared((block_N, block_S), dtype)
            dA_m = T.alloc_fragment((block_M,), "float32")
            dA_k = T.alloc_fragment((block_K,), "float32")
            dt_k = T.alloc_fragment((block_K,), accum_dtype)
            acc = T.alloc_fragment((block_M, block_N), accum_dtype)

            b = bc // n_chunks
            c = bc % n_chunks
            m_start = (bt % m_tiles) * block_M
            n_start = (bt // m_tiles) * block_N
            group = bh // heads_per_group
            t_start = c * chunk + m_start

            # What earlier chunks left: the state seen through C, faded by the decay up to each position.
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(d_state, block_S), num_stages=num_stages):
                T.copy(C[b, t_start : t_start + block_M, group, k * block_S : (k + 1) * block_S], C_tile)
                T.copy(states[b, c, bh, n_start, k * block_S], state_tile)
                T.gemm(C_tile, state_tile, acc, transpose_B=True)
            T.copy(dA_sum[b, bh, c, m_start], dA_m)
            for i, j in T.Parallel(block_M, block_N):
                acc[i, j] *= T.exp2(dA_m[i] * LOG2_E)

            # This chunk: only the tiles of s that hold a position up to the last one of this block.
            for k in T.Pipelined(T.ceildiv(T.min(m_start + block_M, chunk), block_K), num_stages=num_stages):
                T.copy(cb[b, c, group, m_start, k * block_K], cb_tile)
                T.copy(dA_sum[b, bh, c, k * block_K], dA_k)
                T.copy(dt[b, bh, c, k * block_K], dt_k)
                for i, j in T.Parallel(block_M, block_K):
                    cb_cast[i, j] = T.if_then_else(
                        m_start + i >= k * block_K + j,
                        cb_tile[i, j] * T.exp2((dA_m[i] - dA_k[j]) * LOG2_E) * dt_k[j],
                        0,
                    )
                T.copy(
                    x[
                        b,
                        c * chunk + k * block_K : c * chunk + (k + 1) * block_K,
                        bh,
                        n_start : n_start + block_N,
                    ],
                    x_tile,
                )
                T.gemm(cb_cast, x_tile, acc)

            for i, j in T.Parallel(block_M, block_N):
                # The last tile of a chunk may reach into the next chunk, which is another block's to write.
                if m_start + i < chunk:
                    out[b, t_start + i, bh, n_start + j] = acc[i, j] + D[bh] * T.cast(
                        x[b, t_start + i, bh, n_start + j], accum_dtype
                    )

    return scan


def main():
    import torch

    batch, seq_len, chunk, groups, heads, head_dim, d_state = 2, 1024, 256, 1, 8, 64, 128
    n_chunks = seq_len // chunk
    half = dict(device="cuda", dtype=torch.float16)
    cb = torch.randn(batch, n_chunks, groups, chunk, chunk, **half)
    x = torch.randn(batch, seq_len, heads, head_dim, **half)
    dt = torch.rand(batch, heads, n_chunks, chunk, **half) * 0.1
    dA_sum = torch.cumsum(-dt.float(), dim=-1)
    C = torch.randn(batch, seq_len, groups, d_state, **half)
    states = torch.randn(batch, n_chunks, heads, head_dim, d_state, **half)
    D = torch.randn(heads, **half)
    kernel = chunk_scan(batch, seq_len, chunk, groups, heads, head_dim, d_state)
    print(kernel(cb, x, dt, dA_sum, C, states, D).shape)


if __name__ == "__main__":
    main()
