"""What a kernel does, chosen by pattern matching over a description of the operation."""

import numpy as np
import tilelang
import tilelang.language as T


def body(operation):
    match operation:
        case "copy":
            return lambda x: x
        case ("scale", factor):
            return lambda x: x * factor
        case {"op": "clip", "low": low, **rest}:
            high = rest.get("high", 1.0)
            return lambda x: T.clamp(x, low, high)
        case [first, *others]:
            functions = [body(one) for one in (first, *others)]

            def chain(x):
                for function in functions:
                    x = function(x)
                return x

            return chain
        case _:
            raise ValueError(f"no operation: {operation}")


def apply(operation, n):
    function = body(operation)

    @T.prim_func
    def kernel(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as b:
            for i in T.Parallel(32):
                Y[b * 32 + i] = function(X[b * 32 + i])

    return tilelang.compile(kernel, out_idx=[1])


x = np.linspace(-2, 2, 50, dtype=np.float32)
cases = [
    ("copy", x),
    (("scale", 3.0), x * 3),
    ({"op": "clip", "low": -1.0}, np.clip(x, -1, 1)),
    ([("scale", 2.0), {"op": "clip", "low": 0.0, "high": 3.0}], np.clip(x * 2, 0, 3)),
]
for operation, expected in cases:
    np.testing.assert_allclose(apply(operation, 50)(x), expected, rtol=1e-6)
try:
    apply(3, 50)
except ValueError as error:
    print(error)
print("all close")
