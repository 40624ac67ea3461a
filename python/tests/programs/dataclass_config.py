"""A fused pair of products, whose sizes are a frozen dataclass with defaults and checks."""

from dataclasses import dataclass, replace

import numpy as np
import tilelang
import tilelang.language as T


@dataclass(frozen=True)
class Sizes:
    tokens: int = 32
    width: int = 32
    hidden: int = 64
    block: int = 32
    threads: int = 64

    def __post_init__(self):
        if self.hidden % self.block:
            raise ValueError("the hidden width is a multiple of a block")

    @property
    def steps(self):
        return self.hidden // self.block


@tilelang.jit(out_idx=-1)
def mlp(s: Sizes):
    @T.prim_func
    def main(
        X: T.Tensor((s.tokens, s.width), "float16"),
        U: T.Tensor((s.width, s.hidden), "float16"),
        D: T.Tensor((s.hidden, s.width), "float16"),
        Y: T.Tensor((s.tokens, s.width), "float32"),
    ):
        with T.Kernel(T.ceildiv(s.tokens, s.block), threads=s.threads) as row:
            x = T.alloc_shared((s.block, s.width), "float16")
            u = T.alloc_shared((s.width, s.block), "float16")
            d = T.alloc_shared((s.block, s.width), "float16")
            h = T.alloc_fragment((s.block, s.block), "float32")
            g = T.alloc_shared((s.block, s.block), "float16")
            y = T.alloc_fragment((s.block, s.width), "float32")
            T.copy(X[row * s.block, 0], x)
            T.clear(y)
            for k in T.serial(s.steps):
                T.copy(U[0, k * s.block], u)
                T.copy(D[k * s.block, 0], d)
                T.clear(h)
                T.gemm(x, u, h)
                for i, j in T.Parallel(s.block, s.block):
                    g[i, j] = T.cast(T.max(h[i, j], 0), "float16")
                T.gemm(g, d, y)
            T.copy(y, Y[row * s.block, 0])

    return main


base = Sizes()
rng = np.random.default_rng(0)
for sizes in (base, replace(base, hidden=96), replace(base, tokens=64)):
    x, u, d = (
        rng.integers(-1, 2, shape).astype(np.float16)
        for shape in ((sizes.tokens, 32), (32, sizes.hidden), (sizes.hidden, 32))
    )
    hidden = np.maximum(x.astype(np.float32) @ u.astype(np.float32), 0)
    np.testing.assert_array_equal(mlp(sizes)(x, u, d), hidden @ d.astype(np.float32))
assert mlp(Sizes()) is mlp(base)
try:
    Sizes(hidden=50)
except ValueError as error:
    print("refused:", error)
print("all close")
