# error: divergent-hazard
import tilelang.language as T
def f(N=128):
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=128) as bx:
            tx = T.get_thread_binding()
            S = T.alloc_shared((128,), "int32")
            acc = T.alloc_var("int32", init=0)
            for i in T.serial(4):
                if tx < i * 16:
                    break
                S[tx] = A[tx] + i
                acc = acc + S[127 - tx]
            B[tx] = acc
    return main
