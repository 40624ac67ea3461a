"""A layer of a product, a bias and an activation."""

import numpy as np
import tilelang
import tilelang.language as T

from .activations import ACTIVATIONS, apply


class Linear:
    block = 32

    def __init__(self, weight, bias, activation="none"):
        self.weight, self.bias = weight, bias
        self.activation = ACTIVATIONS[activation]
        self._kernels = {}

    def kernel(self, rows):
        if rows not in self._kernels:
            self._kernels[rows] = tilelang.compile(self._build(rows), out_idx=[-1])
        return self._kernels[rows]

    def _build(self, M):
        (N, K), block, activation = self.weight.shape, self.block, self.activation

        @T.prim_func
        def linear(
            X: T.Tensor((M, K), "float16"),
            W: T.Tensor((N, K), "float16"),
            bias: T.Tensor((N,), "float32"),
            Y: T.Tensor((M, N), "float32"),
        ):
            with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=64) as (bx, by):
                x = T.alloc_shared((block, 16), "float16")
                w = T.alloc_shared((block, 16), "float16")
                y = T.alloc_fragment((block, block), "float32")
                T.clear(y)
                for k in T.Pipelined(T.ceildiv(K, 16), num_stages=2):
                    T.copy(X[by * block, k * 16], x)
                    T.copy(W[bx * block, k * 16], w)
                    T.gemm(x, w, y, transpose_B=True)
                for i, j in T.Parallel(block, block):
                    y[i, j] += bias[bx * block + j]
                apply(y, block, block, activation)
                T.copy(y, Y[by * block, bx * block])

        return linear

    def __call__(self, x):
        return self.kernel(x.shape[0])(x, self.weight, self.bias)

    def reference(self, x):
        y = x.astype(np.float32) @ self.weight.astype(np.float32).T + self.bias
        return y
