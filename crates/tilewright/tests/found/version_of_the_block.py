# Which version is read depends on the block, and no loop is left that asks for it.
import tilelang.language as T


@T.prim_func
def main(A10: T.Tensor((1, 1), "float16"), A12: T.Tensor((1, 1), "int32")):
    with T.Kernel(2, 1, threads=256) as (bx, by):
        f9 = T.alloc_fragment((1, 17), "float32")
        T.fill(f9, 2)
        s11 = T.alloc_shared((1, 1), "float16")
        f13 = T.alloc_fragment((1, 17), "float16")
        for i6 in T.Pipelined((bx + 2), num_stages=4):
            if (bx == 1):
                T.copy(A10[0, 0], s11)
                T.copy(A12[0, 0], f13)
                T.gemm(s11, f13, f9)
