# One thread copies, and threads of its own warp read.
import tilelang.language as T


@T.prim_func
def main(A9: T.Tensor((4,), "float32"), A11: T.Tensor((3,), "int32"), A12: T.Tensor((1, 1, 128), "float16")):
    with T.Kernel(1, 1, threads=128) as (bx, by):
        f5 = T.alloc_fragment((128,), "float16")
        T.clear(f5)
        for i3 in T.Pipelined(5, num_stages=3):
            s10 = T.alloc_shared((1,), "float32")
            for i4 in T.Pipelined(5, num_stages=4):
                T.copy(A9[(i3 * 1)], s10)
                for i5 in T.Parallel(8):
                    T.atomic_min(A11[(i5 % 3)], T.cast(T.max(T.int8(0), s10[0]), "int32"))
            T.copy(f5, A12[bx, by, 0])
