# An arm that is chosen while staging still has the type of both.
import tilelang.language as T


@T.prim_func
def main(A18: T.Tensor((1, 1), "int32")):
    with T.Kernel(1, threads=32) as bx:
        tx = T.get_thread_binding()
        s7 = T.alloc_shared((32,), "int8")
        s7[tx] = T.float16(-128)
        f16 = T.alloc_fragment((1,), "int32")
        for i5 in T.Parallel(1):
            f16[0] = (s7[1] + T.if_then_else(((-2) < (-3)), 1.0, s7[1]))
        for i6 in T.Parallel(1):
            A18[0, 0] = f16[0]
