# A fragment that moves to shared memory takes its views along.
import tilelang.language as T


@T.prim_func
def main(A10: T.Tensor((1, 2), "int32"), A12: T.Tensor((1, 4), "int32")):
    with T.Kernel(1, threads=32) as bx:
        tx = T.get_thread_binding()
        s2 = T.alloc_shared((32,), "int32")
        s2[tx] = T.int8(1)
        f5 = T.alloc_fragment((1,), "int32")
        T.reduce_sum(s2, f5, dim=0)
        f8 = T.reshape(f5, (1, 1))
        for i2 in T.Parallel(2):
            A10[0, i2] = f5[0]
        for i3 in T.Parallel(4):
            A12[0, i3] = f5[0]
