"""Kernels that classes make: overridden methods, class variables, callables as parameters."""

import abc

import numpy as np
import tilelang
import tilelang.language as T


class Elementwise(abc.ABC):
    block = 64

    def __init__(self, n, dtype="float32"):
        self.n, self.dtype = n, dtype
        self.kernel = tilelang.compile(self.program(), out_idx=[-1])

    @abc.abstractmethod
    def op(self, x): ...

    def program(self):
        n, dtype = self.n, self.dtype

        @T.prim_func
        def kernel(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
            with T.Kernel(T.ceildiv(n, self.block), threads=self.block) as b:
                for i in T.Parallel(self.block):
                    B[b * self.block + i] = self.op(A[b * self.block + i])

        return kernel

    def __call__(self, x):
        return self.kernel(x)


class Sigmoid(Elementwise):
    def op(self, x):
        return 1 / (1 + T.exp(-x))


class Swish(Sigmoid):
    block = 32

    def op(self, x):
        return x * super().op(x)


class Affine:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __call__(self, x):
        return self.a * x + self.b


class Chain(Elementwise):
    parts = (Affine(2, 1), Affine(0.5, -3))

    def op(self, x):
        for part in self.parts:
            x = part(x)
        return x


class Accumulator:
    """A class whose macros are methods."""

    def __init__(self, step):
        self.step = step

    @T.macro
    def fill(self, buffer, n):
        for i in range(n):
            buffer[i] = i * self.step

    @T.inline
    def shift(self, buffer):
        for i in T.Parallel(buffer.shape[0]):
            buffer[i] = buffer[i] + self.step


def ramp(n, accumulator):
    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            accumulator.fill(A, n)
            accumulator.shift(A)

    return tilelang.compile(kernel)


a = np.zeros(16, np.float32)
ramp(16, Accumulator(3))(a)
np.testing.assert_array_equal(a, np.arange(16) * 3 + 3)

x = np.linspace(-3, 3, 100, dtype=np.float32)
sigmoid = 1 / (1 + np.exp(-x))
np.testing.assert_allclose(Sigmoid(100)(x), sigmoid, rtol=1e-5)
np.testing.assert_allclose(Swish(100)(x), x * sigmoid, rtol=1e-5, atol=1e-6)
np.testing.assert_allclose(Chain(100)(x), 0.5 * (2 * x + 1) - 3, rtol=1e-5, atol=1e-6)
print("all close")
