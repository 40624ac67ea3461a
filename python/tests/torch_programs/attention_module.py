"""Attention as a module over a kernel, with shapes of batches and heads, against torch's."""

import math

import tilelang
import tilelang.language as T
import torch
import torch.nn.functional as F


@tilelang.jit(out_idx=[3])
def attention(B, H, S, D, is_causal, block=16):
    scale = 1.0 / math.sqrt(D) * 1.44269504
    shape = (B, H, S, D)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        O: T.Tensor(shape, "float32"),
    ):
        with T.Kernel(S // block, H, B, threads=32) as (tile, head, batch):
            q = T.alloc_shared((block, D), "float16")
            k = T.alloc_shared((block, D), "float16")
            v = T.alloc_shared((block, D), "float16")
            scores = T.alloc_fragment((block, block), "float32")
            weights = T.alloc_fragment((block, block), "float16")
            o = T.alloc_fragment((block, D), "float32")
            top = T.alloc_fragment((block,), "float32")
            before = T.alloc_fragment((block,), "float32")
            part = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            T.copy(Q[batch, head, tile * block, 0], q)
            T.clear(o)
            T.clear(total)
            T.fill(top, -T.infinity("float32"))
            for n in T.serial(tile + 1 if is_causal else S // block):
                T.copy(K[batch, head, n * block, 0], k)
                T.copy(V[batch, head, n * block, 0], v)
                if is_causal:
                    for i, j in T.Parallel(block, block):
                        seen = tile * block + i >= n * block + j
                        scores[i, j] = T.if_then_else(seen, 0, -T.infinity("float32"))
                else:
                    T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                T.copy(top, before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.exp2((scores[i, j] - top[i]) * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block):
                    before[i] = T.exp2((before[i] - top[i]) * scale)
                    total[i] = total[i] * before[i] + part[i]
                for i, j in T.Parallel(block, D):
                    o[i, j] = o[i, j] * before[i]
                T.copy(scores, weights)
                T.gemm(weights, v, o)
            for i, j in T.Parallel(block, D):
                O[batch, head, tile * block + i, j] = o[i, j] / total[i]

    return main


class Attention(torch.nn.Module):
    def __init__(self, is_causal):
        super().__init__()
        self.is_causal = is_causal

    def forward(self, q, k, v):
        return attention(*q.shape, self.is_causal)(q, k, v)


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
q, k, v = (torch.randn(1, 2, 32, 16, device=device, dtype=torch.float16) for _ in range(3))
for is_causal in (False, True):
    expected = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=is_causal)
    torch.testing.assert_close(Attention(is_causal)(q, k, v), expected, rtol=1e-2, atol=1e-2)
print("all close")
