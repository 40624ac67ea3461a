"""A module with parameters, trained for a few steps through kernels for all three products."""

import argparse

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[2])
def matmul(M, N, K, trans_a=False, trans_b=False, block=16, dtype="float32"):
    shape_a = (K, M) if trans_a else (M, K)
    shape_b = (N, K) if trans_b else (K, N)

    @T.prim_func
    def main(A: T.Tensor(shape_a, dtype), B: T.Tensor(shape_b, dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=64) as (bx, by):
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.serial(K):
                for i, j in T.Parallel(block, block):
                    row, column = by * block + i, bx * block + j
                    if row < M and column < N:
                        a = A[k, row] if trans_a else A[row, k]
                        b = B[column, k] if trans_b else B[k, column]
                        c[i, j] += a * b
            T.copy(c, C[by * block, bx * block])

    return main


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        (m, k), n = x.shape, w.shape[0]
        return matmul(m, n, k, trans_b=True)(x, w)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        grad = grad.contiguous()
        (m, k), n = x.shape, w.shape[0]
        return matmul(m, k, n)(grad, w), matmul(n, k, m, trans_a=True)(grad, x)


class Linear(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outputs, inputs) * 0.1)

    def forward(self, x):
        return Product.apply(x, self.weight)


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=5)
args = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
ours = Linear(16, 8).to(device)
plain = torch.nn.Linear(16, 8, bias=False).to(device)
plain.weight.data.copy_(ours.weight.data)
x, target = torch.randn(32, 16, device=device), torch.randn(32, 8, device=device)
for step in range(args.steps):
    for model in (ours, plain):
        loss = (model(x) - target).square().mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            model.weight -= 0.1 * model.weight.grad
    print(step, round(loss.item(), 4))
torch.testing.assert_close(ours.weight, plain.weight, rtol=1e-4, atol=1e-5)
print("all close")
