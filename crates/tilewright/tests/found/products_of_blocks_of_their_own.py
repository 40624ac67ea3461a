# Two products whose accumulators live in a loop's body, and one behind it.
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 128), "bfloat16"), B: T.Tensor((128, 64), "bfloat16"), C: T.Tensor((64, 64), "float32"), D: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((64, 32), "bfloat16")
        t = T.alloc_shared((32, 64), "bfloat16")
        for i in T.serial(2):
            f = T.alloc_fragment((64, 64), "float32")
            T.clear(f)
            for k in T.Pipelined(4, num_stages=1):
                T.copy(A[0, k * 32], s)
                T.copy(B[k * 32, 0], t)
                T.gemm(s, t, f)
            T.copy(f, C)
        g = T.alloc_fragment((64, 64), "float32")
        T.clear(g)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[0, k * 32], s)
            T.copy(B[k * 32, 0], t)
            T.gemm(s, t, g)
        T.copy(g, D)
