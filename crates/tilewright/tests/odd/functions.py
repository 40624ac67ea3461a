"""Every function of the language on every float type that has arithmetic."""

import tilelang.language as T

ONE = [
    T.exp, T.exp2, T.exp10, T.expm1, T.log, T.log2, T.log10, T.log1p, T.sqrt, T.rsqrt, T.sin, T.cos,
    T.tan, T.asin, T.acos, T.atan, T.sinh, T.cosh, T.tanh, T.asinh, T.acosh, T.atanh, T.erf, T.sigmoid,
    T.floor, T.ceil, T.trunc, T.nearbyint, T.round, T.abs, T.__exp, T.__exp10, T.__log, T.__log2,
    T.__log10, T.__sin, T.__cos, T.__tan, T.fast_rcp,
]
TWO = [T.pow, T.fmod, T.atan2, T.hypot, T.copysign, T.max, T.min]


@T.prim_func
def functions(
    a0: T.Tensor((64,), "float16"),
    a1: T.Tensor((64,), "bfloat16"),
    a2: T.Tensor((64,), "float32"),
    a3: T.Tensor((64,), "float64"),
    o0: T.Tensor((50, 64), "float16"),
    o1: T.Tensor((50, 64), "bfloat16"),
    o2: T.Tensor((50, 64), "float32"),
    o3: T.Tensor((50, 64), "float64"),
):
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(64):
            for a, o in [(a0, o0), (a1, o1), (a2, o2), (a3, o3)]:
                for k, f in enumerate(ONE):
                    o[k, i] = f(a[i])
                for k, f in enumerate(TWO):
                    o[len(ONE) + k, i] = f(a[i], a[63 - i])
                o[49, i] = T.if_then_else(T.isnan(a[i]) or T.isinf(a[i]), a[0], a[i] / a[1])
