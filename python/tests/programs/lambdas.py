"""Functions as values: lambdas, partials, tables of them, functions of functions."""

import functools
import operator

import numpy as np
import tilelang
import tilelang.language as T

ACTIVATIONS = {"relu": lambda x: T.max(x, 0), "square": lambda x: x * x, "leaky": lambda x: T.if_then_else(x > 0, x, x * 0.5)}


def compose(*functions):
    return lambda x: functools.reduce(lambda value, f: f(value), functions, x)


def times(x, factor):
    return x * factor


@tilelang.jit(out_idx=[-1])
def apply(N, function):
    double = functools.partial(operator.mul, 2)

    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=N):
            for i in T.Parallel(N):
                B[i] = function(A[i]) + double(3) + times(A[i], factor=0)

    return kernel


x = np.linspace(-1, 1, 32, dtype=np.float32)
for name, expected in [
    ("relu", np.maximum(x, 0)),
    ("square", x * x),
    ("leaky", np.where(x > 0, x, x * 0.5)),
]:
    np.testing.assert_allclose(apply(32, ACTIVATIONS[name])(x), expected + 6, rtol=1e-6)
both = compose(ACTIVATIONS["square"], lambda x: x + 1)
np.testing.assert_allclose(apply(32, both)(x), x * x + 7, rtol=1e-6)
print("all close")
