"""A project's decorators around the package's: checks, counts, a registry."""

import functools

import numpy as np
import tilelang
import tilelang.language as T

REGISTRY = {}


def operator(name, **options):
    def register(factory):
        made = tilelang.jit(**options)(factory)

        @functools.wraps(factory)
        def call(*args, **keywords):
            call.count += 1
            return made(*args, **keywords)

        call.count = 0
        REGISTRY[name] = call
        return call

    return register


@operator("clamp", out_idx=[1])
def clamp(n, low=-1.0, high=1.0):
    """Values no lower than `low`, no higher than `high`."""

    @T.prim_func
    def kernel(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as b:
            for i in T.Parallel(64):
                Y[b * 64 + i] = T.min(T.max(X[b * 64 + i], low), high)

    return kernel


@operator("sign", out_idx=[1])
def sign(n):
    @T.prim_func
    def kernel(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "int8")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as b:
            for i in T.Parallel(64):
                x = X[b * 64 + i]
                Y[b * 64 + i] = T.Select(x > 0, 1, T.Select(x < 0, -1, 0))

    return kernel


x = np.linspace(-3, 3, 101, dtype=np.float32)
np.testing.assert_array_equal(REGISTRY["clamp"](101)(x), np.clip(x, -1, 1))
np.testing.assert_array_equal(REGISTRY["clamp"](101, high=0.5)(x), np.clip(x, -1, 0.5))
np.testing.assert_array_equal(REGISTRY["sign"](101)(x), np.sign(x).astype(np.int8))
assert {n: f.count for n, f in REGISTRY.items()} == {"clamp": 2, "sign": 1}
assert clamp.__doc__.startswith("Values")
print("all close")
