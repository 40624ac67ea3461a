"""Every type to every type, element by element."""

import tilelang.language as T


@T.prim_func
def casts(
    a0: T.Tensor((64,), "bool"),
    a1: T.Tensor((64,), "int8"),
    a2: T.Tensor((64,), "int16"),
    a3: T.Tensor((64,), "int32"),
    a4: T.Tensor((64,), "int64"),
    a5: T.Tensor((64,), "uint8"),
    a6: T.Tensor((64,), "uint16"),
    a7: T.Tensor((64,), "uint32"),
    a8: T.Tensor((64,), "uint64"),
    a9: T.Tensor((64,), "float16"),
    a10: T.Tensor((64,), "bfloat16"),
    a11: T.Tensor((64,), "float32"),
    a12: T.Tensor((64,), "float64"),
    a13: T.Tensor((64,), "float8_e4m3fn"),
    a14: T.Tensor((64,), "float8_e5m2"),
    a15: T.Tensor((64,), "float8_e4m3fnuz"),
    a16: T.Tensor((64,), "float8_e5m2fnuz"),
    o0: T.Tensor((17, 64), "bool"),
    o1: T.Tensor((17, 64), "int8"),
    o2: T.Tensor((17, 64), "int16"),
    o3: T.Tensor((17, 64), "int32"),
    o4: T.Tensor((17, 64), "int64"),
    o5: T.Tensor((17, 64), "uint8"),
    o6: T.Tensor((17, 64), "uint16"),
    o7: T.Tensor((17, 64), "uint32"),
    o8: T.Tensor((17, 64), "uint64"),
    o9: T.Tensor((17, 64), "float16"),
    o10: T.Tensor((17, 64), "bfloat16"),
    o11: T.Tensor((17, 64), "float32"),
    o12: T.Tensor((17, 64), "float64"),
    o13: T.Tensor((17, 64), "float8_e4m3fn"),
    o14: T.Tensor((17, 64), "float8_e5m2"),
    o15: T.Tensor((17, 64), "float8_e4m3fnuz"),
    o16: T.Tensor((17, 64), "float8_e5m2fnuz"),
):
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(64):
            for k, a in enumerate([a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16]):
                for o in [o0, o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, o11, o12, o13, o14, o15, o16]:
                    o[k, i] = T.cast(a[i], o.dtype)
