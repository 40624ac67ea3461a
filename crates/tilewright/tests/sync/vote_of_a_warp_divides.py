# error: divergent-hazard
import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((128,), "int32"), O: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=128) as bx:
        tx = T.get_thread_binding()
        S = T.alloc_shared((128,), "int32")
        acc = T.alloc_var("int32", init=0)
        for i in T.serial(4):
            if T.any_sync(A[tx] > i):
                break
            S[tx] = A[tx] + i
            acc = acc + S[127 - tx]
        O[tx] = acc
