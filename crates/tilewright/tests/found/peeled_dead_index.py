# A peeled iteration holds an index that its condition keeps from being used.
import tilelang.language as T


@T.prim_func
def main(A16: T.Tensor((1, 1), "int32"), A18: T.Tensor((6, 1), "int32")):
    with T.Kernel(1, threads=64) as bx:
        s4 = T.alloc_shared((2, 1, 1), "int32")
        for i9 in T.Parallel(2):
            s4[i9, 0, 0] = T.int64(1)
        f15 = T.alloc_fragment((1, 1), "float32")
        s19 = T.alloc_shared((1, 1), "float16")
        s20 = T.alloc_shared((1, 1), "int32")
        for i25 in T.Pipelined(3, num_stages=2):
            T.clear(f15)
            s17 = T.alloc_shared((1, 1), "float16")
            T.copy(A16[0:0 + 1, 0:0 + 1], s17)
            T.copy(A18[5:5 + 1, 0:0 + 1], s19)
            T.gemm(s17, s19, f15)
            if (i25 <= 1):
                for i28 in T.Parallel(1):
                    s20[0, 0] = s4[i25, 0, 0]
