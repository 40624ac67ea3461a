"""Kernels inside `torch.compile`, as parts of one graph."""

import tilelang
import tilelang.language as T
import torch

n = T.dynamic("n")


@T.prim_func
def gelu(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
    with T.Kernel(T.ceildiv(n, 128), threads=128) as b:
        for i in T.Parallel(128):
            x = X[b * 128 + i]
            Y[b * 128 + i] = 0.5 * x * (1.0 + T.erf(x * 0.70710678))


kernel = tilelang.compile(gelu, out_idx=[1])


@torch.compile(fullgraph=True, backend="aot_eager")
def block(x, scale):
    return kernel(x * scale) + x


device = "cuda" if torch.cuda.is_available() else "cpu"
for size in (64, 100):
    x = torch.randn(size, device=device)
    expected = torch.nn.functional.gelu(x * 2.0) + x
    torch.testing.assert_close(block(x, 2.0), expected, rtol=1e-4, atol=1e-5)
print("all close")
