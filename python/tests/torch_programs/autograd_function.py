"""A function with a backward pass of its own, both by kernels; checked by gradcheck's idea."""

import tilelang
import tilelang.language as T
import torch


def forward(N, dtype="float32"):
    @T.prim_func
    def kernel(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as b:
            for i in T.Parallel(128):
                x = X[b * 128 + i]
                Y[b * 128 + i] = x / (1.0 + T.exp(-x))

    return kernel


def backward(N, dtype="float32"):
    @T.prim_func
    def kernel(X: T.Tensor((N,), dtype), dY: T.Tensor((N,), dtype), dX: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as b:
            for i in T.Parallel(128):
                x = X[b * 128 + i]
                s = 1.0 / (1.0 + T.exp(-x))
                dX[b * 128 + i] = dY[b * 128 + i] * (s + x * s * (1.0 - s))

    return kernel


class Silu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return tilelang.compile(forward(x.numel()), out_idx=[1])(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return tilelang.compile(backward(x.numel()), out_idx=[2])(x, grad.contiguous())


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
x = torch.randn(1000, device=device, requires_grad=True)
y = Silu.apply(x)
y.square().sum().backward()
ours = x.grad.clone()
x.grad = None
torch.nn.functional.silu(x).square().sum().backward()
torch.testing.assert_close(y, torch.nn.functional.silu(x), rtol=1e-4, atol=1e-5)
torch.testing.assert_close(ours, x.grad, rtol=1e-4, atol=1e-5)
print("all close")
