# An element named by the index of the only block.
import tilelang.language as T


@T.prim_func
def main(A0: T.Tensor((1, 1, 1), "int32")):
    with T.Kernel(1, threads=32) as bx:
        f1 = T.alloc_fragment((1, 1, 1), "int32")
        T.copy(A0[0:0 + 1, 0:0 + 1, 0:0 + 1], f1)
        s2 = T.alloc_shared((1,), "int32")
        T.fill(s2, 1)
        for i1 in T.Parallel(1):
            if (f1[bx, (0 - bx), 0] < (-1)):
                T.atomic_add(s2[0], 0)
