"""Attention with an online softmax, macros inside the factory, a causal mask by a Python flag."""

import math

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[3], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def attention(heads, seq, dim, causal, block=32, dtype=T.float16):
    scale = 1.0 / math.sqrt(dim) * math.log2(math.e)
    shape = [heads, seq, dim]

    @T.macro
    def scores(Q_shared, K_shared, S, q, k):
        if causal:
            for i, j in T.Parallel(block, block):
                S[i, j] = T.if_then_else(q * block + i >= k * block + j, 0, -T.infinity(S.dtype))
        else:
            T.clear(S)
        T.gemm(Q_shared, K_shared, S, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)

    @T.prim_func
    def kernel(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        O: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq, block), heads, threads=128) as (bx, head):
            Q_shared = T.alloc_shared([block, dim], dtype)
            K_shared = T.alloc_shared([block, dim], dtype)
            V_shared = T.alloc_shared([block, dim], dtype)
            S = T.alloc_fragment([block, block], "float32")
            P = T.alloc_fragment([block, block], dtype)
            acc = T.alloc_fragment([block, dim], "float32")
            top = T.alloc_fragment([block], "float32")
            before = T.alloc_fragment([block], "float32")
            factor = T.alloc_fragment([block], "float32")
            row = T.alloc_fragment([block], "float32")
            total = T.alloc_fragment([block], "float32")
            T.copy(Q[head, bx * block : (bx + 1) * block, :], Q_shared)
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity("float32"))
            steps = (bx + 1) if causal else T.ceildiv(seq, block)
            for k in T.Pipelined(steps, num_stages=1):
                T.copy(K[head, k * block : (k + 1) * block, :], K_shared)
                scores(Q_shared, K_shared, S, bx, k)
                T.copy(V[head, k * block : (k + 1) * block, :], V_shared)
                T.copy(top, before)
                T.reduce_max(S, top, dim=1, clear=False)
                for i in T.Parallel(block):
                    factor[i] = T.exp2((before[i] - top[i]) * scale)
                for i, j in T.Parallel(block, dim):
                    acc[i, j] *= factor[i]
                for i, j in T.Parallel(block, block):
                    S[i, j] = T.exp2((S[i, j] - top[i]) * scale)
                T.reduce_sum(S, row, dim=1)
                for i in T.Parallel(block):
                    total[i] = total[i] * factor[i] + row[i]
                T.copy(S, P)
                T.gemm(P, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block, dim):
                acc[i, j] /= total[i]
            T.copy(acc, O[head, bx * block : (bx + 1) * block, :])

    return kernel


def reference(q, k, v, causal):
    s = q.astype(np.float32) @ k.astype(np.float32).swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tri(s.shape[-1], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return (p / p.sum(axis=-1, keepdims=True)) @ v.astype(np.float32)


def main(heads=2, seq=96, dim=32):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((heads, seq, dim)).astype(np.float16) for _ in range(3))
    for causal in (False, True):
        out = attention(heads, seq, dim, causal)(q, k, v)
        np.testing.assert_allclose(out, reference(q, k, v, causal), rtol=1e-2, atol=1e-2)
    print("all close")


if __name__ == "__main__":
    main()
