"""Atomic operations on every type that has them, in global and in shared memory."""

import tilelang.language as T


@T.prim_func
def atomics(
    a0: T.Tensor((64,), "int32"),
    a1: T.Tensor((64,), "int64"),
    a2: T.Tensor((64,), "uint32"),
    a3: T.Tensor((64,), "uint64"),
    a4: T.Tensor((64,), "float16"),
    a5: T.Tensor((64,), "bfloat16"),
    a6: T.Tensor((64,), "float32"),
    a7: T.Tensor((64,), "float64"),
    o0: T.Tensor((8,), "int32"),
    o1: T.Tensor((8,), "int64"),
    o2: T.Tensor((8,), "uint32"),
    o3: T.Tensor((8,), "uint64"),
    o4: T.Tensor((8,), "float16"),
    o5: T.Tensor((8,), "bfloat16"),
    o6: T.Tensor((8,), "float32"),
    o7: T.Tensor((8,), "float64"),
):
    with T.Kernel(2, threads=64) as bx:
        tx = T.get_thread_binding(0)
        for a, o in [(a0, o0), (a1, o1), (a2, o2), (a3, o3), (a4, o4), (a5, o5), (a6, o6), (a7, o7)]:
            s = T.alloc_shared((8,), o.dtype)
            T.clear(s)
            T.sync_threads()
            T.atomic_add(s[tx % 4], a[tx])
            T.atomic_max(s[4 + tx % 2], a[tx])
            T.atomic_min(s[6 + tx % 2], a[tx])
            T.sync_threads()
            if tx < 4:
                T.atomic_add(o[tx], s[tx])
                T.atomic_add(o[tx], s[tx], memory_order="acq_rel")
            elif tx < 6:
                T.atomic_max(o[tx], s[tx])
            elif tx < 8:
                T.atomic_min(o[tx], s[tx])
