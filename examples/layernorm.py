"""Layer normalisation of the rows of a matrix, with gain and bias.

    X and Y are (M, N), gamma and beta are (N,);
    Y[i, j] = (X[i, j] - mean_i) / sqrt(var_i + eps) * gamma[j] + beta[j],
    where mean_i and var_i are those of row i and the variance is divided by N.

A block holds whole rows in registers: the mean first, then the variance of the centred row, which
stays accurate when the mean is large.

    tilewright run examples/layernorm.py
    tilewright run examples/layernorm.py --set M=37 --set N=300 --set dtype=float32
    tilewright run examples/layernorm.py:layernorm_stats
"""

import tilewright as tilelang
import tilewright.language as T


@tilelang.jit
def layernorm(
    X,
    gamma,
    beta,
    M=256,
    N=1024,
    block_M=4,
    eps=1e-5,
    threads=128,
    dtype=T.float16,
    accum_dtype=T.float32,
):
    X: T.Tensor[[M, N], dtype]
    gamma: T.Tensor[[N], dtype]
    beta: T.Tensor[[N], dtype]
    Y = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
        x = T.alloc_fragment((block_M, N), accum_dtype)
        square = T.alloc_fragment((block_M, N), accum_dtype)
        mean = T.alloc_fragment((block_M,), accum_dtype)
        variance = T.alloc_fragment((block_M,), accum_dtype)

        T.copy(X[bx * block_M, 0], x)
        T.reduce_sum(x, mean, dim=1)
        for i, j in T.Parallel(block_M, N):
            x[i, j] = x[i, j] - mean[i] / N
            square[i, j] = x[i, j] * x[i, j]
        T.reduce_sum(square, variance, dim=1)
        for i, j in T.Parallel(block_M, N):
            x[i, j] = x[i, j] * T.rsqrt(variance[i] / N + eps) * gamma[j] + beta[j]
        T.copy(x, Y[bx * block_M, 0])

    return Y


@tilelang.jit(out_idx=[1, 2])
def layernorm_stats(M=256, N=1000, block_M=8, block_N=128, eps=1e-5, dtype="float16", accum_dtype="float32"):
    """Mean and 1 / sqrt(var + eps) of each row, for rows too long to hold: tile by tile, in two passes."""

    @T.prim_func
    def kernel(
        X: T.Tensor((M, N), dtype),
        mean: T.Tensor((M,), accum_dtype),
        rstd: T.Tensor((M,), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, block_N), accum_dtype)
            mu = T.alloc_fragment((block_M,), accum_dtype)
            variance = T.alloc_fragment((block_M,), accum_dtype)

            T.clear(mu)
            for k in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx * block_M, k * block_N], x)
                T.reduce_sum(x, mu, dim=1, clear=False)
            for i in T.Parallel(block_M):
                mu[i] = mu[i] / N

            T.clear(variance)
            for k in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx * block_M, k * block_N], x)
                # Columns past the end read as zero, not as the mean, so they are masked here.
                for i, j in T.Parallel(block_M, block_N):
                    x[i, j] = T.if_then_else(k * block_N + j < N, (x[i, j] - mu[i]) * (x[i, j] - mu[i]), 0.0)
                T.reduce_sum(x, variance, dim=1, clear=False)
            for i in T.Parallel(block_M):
                variance[i] = T.rsqrt(variance[i] / N + eps)

            T.copy(mu, mean[bx * block_M])
            T.copy(variance, rstd[bx * block_M])

    return kernel


def main():
    import torch

    x = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    gamma = torch.randn(4096, device="cuda", dtype=torch.float16)
    beta = torch.randn(4096, device="cuda", dtype=torch.float16)
    expected = torch.nn.functional.layer_norm(x, (4096,), gamma, beta)
    torch.testing.assert_close(layernorm(x, gamma, beta, M=4096, N=4096), expected, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
