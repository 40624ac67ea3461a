"""Root-mean-square normalisation of the rows of a matrix.

    X and Y are (M, N), W is (N,); Y[i, j] = X[i, j] / sqrt(mean(X[i, :]**2) + eps) * W[j].

rms_norm holds whole rows in registers and reads X once. rms_norm_split reads long rows tile by
tile, twice. rms_norm_rows leaves the number of rows open until launch.

    tilewright run examples/rms_norm.py
    tilewright run examples/rms_norm.py --set M=37 --set N=300 --set dtype=bfloat16
    tilewright run examples/rms_norm.py:rms_norm_split --set M=64 --set N=1000
    tilewright run examples/rms_norm.py:rms_norm_rows --set m=50
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def rms_norm(M=256, N=1024, block_M=4, eps=1e-6, threads=128, dtype="float16", accum_dtype="float32"):
    @T.prim_func
    def kernel(
        X: T.Tensor((M, N), dtype),
        W: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), accum_dtype)
            square = T.alloc_fragment((block_M, N), accum_dtype)
            scale = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + eps)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * scale[i] * W[j]
            T.copy(x, Y[bx * block_M, 0])

    return kernel


@tilelang.jit
def rms_norm_split(X, W, block_M=8, block_N=128, eps=1e-6, dtype=T.float16, accum_dtype=T.float32):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], dtype]
    W: T.Tensor[[N], dtype]
    Y = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        x_shared = T.alloc_shared((block_M, block_N), dtype)
        square = T.alloc_fragment((block_M, block_N), accum_dtype)
        scale = T.alloc_fragment((block_M,), accum_dtype)

        T.clear(scale)
        for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
            T.copy(X[bx * block_M, k * block_N], x_shared)
            for i, j in T.Parallel(block_M, block_N):
                square[i, j] = T.cast(x_shared[i, j], accum_dtype) * T.cast(x_shared[i, j], accum_dtype)
            T.reduce_sum(square, scale, dim=1, clear=False)
        for i in T.Parallel(block_M):
            scale[i] = T.rsqrt(scale[i] / N + eps)

        for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
            T.copy(X[bx * block_M, k * block_N], x_shared)
            for i, j in T.Parallel(block_M, block_N):
                Y[bx * block_M + i, k * block_N + j] = x_shared[i, j] * scale[i] * W[k * block_N + j]

    return Y


@tilelang.jit(out_idx=[-1])
def rms_norm_rows(N=512, block_M=4, eps=1e-6, threads=128, dtype="float16", accum_dtype="float32"):
    m = T.dynamic("m")

    @T.prim_func
    def kernel(
        X: T.Tensor((m, N), dtype),
        W: T.Tensor((N,), dtype),
        Y: T.Tensor((m, N), dtype),
    ):
        with T.Kernel(T.ceildiv(m, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), accum_dtype)
            square = T.alloc_fragment((block_M, N), accum_dtype)
            scale = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, scale, dim=1)
            for i, j in T.Parallel(block_M, N):
                Y[bx * block_M + i, j] = x[i, j] * T.rsqrt(scale[i] / N + eps) * W[j]

    return kernel


def main():
    import torch

    x = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    w = torch.randn(4096, device="cuda", dtype=torch.float16)
    expected = torch.nn.functional.rms_norm(x, (4096,), w, eps=1e-6)
    torch.testing.assert_close(rms_norm(4096, 4096)(x, w), expected, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
