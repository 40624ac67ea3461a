"""Arithmetic and bits of every integer type."""

import tilelang.language as T


@T.prim_func
def integers(
    a0: T.Tensor((64,), "int8"),
    a1: T.Tensor((64,), "int16"),
    a2: T.Tensor((64,), "int32"),
    a3: T.Tensor((64,), "int64"),
    a4: T.Tensor((64,), "uint8"),
    a5: T.Tensor((64,), "uint16"),
    a6: T.Tensor((64,), "uint32"),
    a7: T.Tensor((64,), "uint64"),
    o0: T.Tensor((19, 64), "int8"),
    o1: T.Tensor((19, 64), "int16"),
    o2: T.Tensor((19, 64), "int32"),
    o3: T.Tensor((19, 64), "int64"),
    o4: T.Tensor((19, 64), "uint8"),
    o5: T.Tensor((19, 64), "uint16"),
    o6: T.Tensor((19, 64), "uint32"),
    o7: T.Tensor((19, 64), "uint64"),
):
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(64):
            for a, o in [(a0, o0), (a1, o1), (a2, o2), (a3, o3), (a4, o4), (a5, o5), (a6, o6), (a7, o7)]:
                o[0, i] = a[i] + a[63 - i]
                o[1, i] = a[i] - a[63 - i]
                o[2, i] = a[i] * a[63 - i]
                o[3, i] = a[i] // T.max(a[63 - i], 1)
                o[4, i] = a[i] % T.max(a[63 - i], 1)
                o[5, i] = T.truncdiv(a[i], T.max(a[63 - i], 1))
                o[6, i] = T.truncmod(a[i], T.max(a[63 - i], 1))
                o[7, i] = a[i] & a[63 - i]
                o[8, i] = a[i] | a[63 - i]
                o[9, i] = a[i] ^ a[63 - i]
                o[10, i] = ~a[i]
                o[11, i] = a[i] << 3
                o[12, i] = a[i] >> 2
                o[13, i] = T.popcount(a[i])
                o[14, i] = T.clz(a[i])
                o[15, i] = T.abs(a[i])
                o[16, i] = T.min(a[i], a[63 - i])
                o[17, i] = T.if_then_else(a[i] < a[63 - i], a[i], a[0])
                o[18, i] = T.if_then_else(a[i] == a[63 - i], -a[i], a[0])
