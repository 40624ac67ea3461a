"""Profiler and reference of torch, with dtypes of torch, as benchmarks are written."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def rms_norm(M, N, dtype=torch.float32, eps=1e-6):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=64) as row:
            x = T.alloc_fragment((1, N), "float32")
            squares = T.alloc_fragment((1, N), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(X[row, 0], x)
            for i, j in T.Parallel(1, N):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, total, dim=1)
            for i, j in T.Parallel(1, N):
                Y[row, j] = x[i, j] * T.rsqrt(total[i] / N + eps) * W[j]

    return main


def reference(x, w):
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


for dtype in (torch.float32, torch.float16, torch.bfloat16):
    kernel = rms_norm(8, 128, dtype)
    profiler = kernel.get_profiler(tilelang.TensorSupplyType.Normal)
    profiler.assert_allclose(reference, rtol=2e-2, atol=2e-2)
    print(dtype, "in", round(profiler.do_bench(warmup=1, rep=2), 3), "ms")
print("all close")
