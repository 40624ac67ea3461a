"""Causal linear attention, chunk by chunk, with the running state in registers.

    Q and K are (batch, seq_len, heads, dim_k), V and O (batch, seq_len, heads, dim_v),
    state is (batch, heads, dim_k, dim_v) in the accumulator's type;
    O[t] = scale * sum over s <= t of (Q[t] . K[s]) V[s], with scale = 1 / sqrt(dim_k),
    state = sum over all s of K[s]^T V[s].

Without a softmax the sum over the past is a matrix, the state K^T V, that grows by each chunk. Inside
a chunk the products are masked to the past; everything before the chunk comes from the state.
A block owns one head and block_V columns of V.

    tilewright run examples/linear_attention.py
    tilewright run examples/linear_attention.py --set seq_len=150 --set dim_k=40 --set dim_v=72
"""

import math

import tilewright as tilelang
import tilewright.language as T


@tilelang.jit(out_idx=[-2, -1])
def linear_attention(
    batch=1,
    seq_len=256,
    heads=4,
    dim_k=64,
    dim_v=64,
    chunk=64,
    block_V=64,
    num_stages=2,
    threads=256,
    dtype="float16",
    accum_dtype="float32",
):
    scale = 1.0 / math.sqrt(dim_k)

    @T.prim_func
    def forward(
        Q: T.Tensor((batch, seq_len, heads, dim_k), dtype),
        K: T.Tensor((batch, seq_len, heads, dim_k), dtype),
        V: T.Tensor((batch, seq_len, heads, dim_v), dtype),
        O: T.Tensor((batch, seq_len, heads, dim_v), dtype),
        state: T.Tensor((batch, heads, dim_k, dim_v), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(dim_v, block_V), heads, batch, threads=threads) as (bx, by, bz):
            q = T.alloc_shared((chunk, dim_k), dtype)
            k = T.alloc_shared((chunk, dim_k), dtype)
            v = T.alloc_shared((chunk, block_V), dtype)
            h_shared = T.alloc_shared((dim_k, block_V), dtype)
            h = T.alloc_fragment((dim_k, block_V), accum_dtype)
            s = T.alloc_fragment((chunk, chunk), accum_dtype)
            s_cast = T.alloc_fragment((chunk, chunk), dtype)
            o = T.alloc_fragment((chunk, block_V), accum_dtype)

            T.clear(h)
            for c in T.Pipelined(T.ceildiv(seq_len, chunk), num_stages=num_stages):
                T.copy(Q[bz, c * chunk : (c + 1) * chunk, by, :], q)
                T.copy(K[bz, c * chunk : (c + 1) * chunk, by, :], k)
                T.copy(V[bz, c * chunk : (c + 1) * chunk, by, bx * block_V : (bx + 1) * block_V], v)

                # Inside the chunk: the masked products of this chunk's queries and keys.
                T.gemm(q, k, s, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(chunk, chunk):
                    s_cast[i, j] = T.if_then_else(j <= i, s[i, j], 0)
                T.gemm(s_cast, v, o, clear_accum=True)

                # Before the chunk: what the state remembers.
                T.copy(h, h_shared)
                T.gemm(q, h_shared, o)
                for i, j in T.Parallel(chunk, block_V):
                    o[i, j] *= scale
                T.copy(o, O[bz, c * chunk : (c + 1) * chunk, by, bx * block_V : (bx + 1) * block_V])

                T.gemm(k, v, h, transpose_A=True)

            T.copy(h, state[bz, by, 0, bx * block_V])

    return forward


def main():
    import torch

    q, k, v = (torch.randn(1, 512, 8, 64, device="cuda", dtype=torch.float16) * 0.2 for _ in range(3))
    output, state = linear_attention(1, 512, 8, 64, 64)(q, k, v)
    scores = torch.einsum("bthd,bshd->bhts", q.float(), k.float()).tril() / 8
    torch.testing.assert_close(output.float(), torch.einsum("bhts,bshd->bthd", scores, v.float()), rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(state, torch.einsum("bshd,bshe->bhde", k.float(), v.float()), rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
