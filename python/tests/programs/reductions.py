"""RMS norm, layer norm and a histogram, by a table of kernels with the same interface."""

import numpy as np
import tilelang
import tilelang.language as T

EPS = 1e-5


def rms_norm(M, N):
    @T.prim_func
    def kernel(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=64) as row:
            x = T.alloc_fragment((1, N), "float32")
            squares = T.alloc_fragment((1, N), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(X[row : row + 1, :], x)
            for i, j in T.Parallel(1, N):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, total, dim=1)
            for i, j in T.Parallel(1, N):
                x[i, j] = x[i, j] * T.rsqrt(total[i] / N + EPS)
            T.copy(x, Y[row : row + 1, :])

    return kernel


def layer_norm(M, N):
    @T.prim_func
    def kernel(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=64) as row:
            x = T.alloc_fragment((1, N), "float32")
            part = T.alloc_fragment((1, N), "float32")
            mean = T.alloc_fragment((1,), "float32")
            spread = T.alloc_fragment((1,), "float32")
            T.copy(X[row : row + 1, :], x)
            T.reduce_sum(x, mean, dim=1)
            for i, j in T.Parallel(1, N):
                part[i, j] = (x[i, j] - mean[i] / N) * (x[i, j] - mean[i] / N)
            T.reduce_sum(part, spread, dim=1)
            for i, j in T.Parallel(1, N):
                x[i, j] = (x[i, j] - mean[i] / N) * T.rsqrt(spread[i] / N + EPS)
            T.copy(x, Y[row : row + 1, :])

    return kernel


@T.prim_func
def histogram(X: T.Tensor((512,), "int32"), Counts: T.Tensor((8,), "int32")):
    with T.Kernel(4, threads=128) as b:
        for i in T.Parallel(128):
            T.atomic_add(Counts[X[b * 128 + i]], 1)


x = np.random.default_rng(0).standard_normal((4, 128), dtype=np.float32)
expected = {
    rms_norm: x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS),
    layer_norm: (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + EPS),
}
kernels = tilelang.par_compile([make(4, 128) for make in expected], out_idx=[1])
for kernel, want in zip(kernels, expected.values()):
    np.testing.assert_allclose(kernel(x), want, rtol=1e-5, atol=1e-5)

values = np.random.default_rng(1).integers(0, 8, 512).astype(np.int32)
counts = np.zeros(8, np.int32)
tilelang.compile(histogram)(values, counts)
np.testing.assert_array_equal(counts, np.bincount(values, minlength=8))
print("all close")
