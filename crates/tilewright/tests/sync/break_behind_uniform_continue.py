import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((128,), "int32"), O: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=128) as bx:
        tx = T.get_thread_binding()
        S = T.alloc_shared((128,), "int32")
        acc = T.alloc_var("int32", init=0)
        for i in T.serial(6):
            S[tx] = A[tx] + i
            acc = acc + S[127 - tx]
            if A[i] > 0:
                continue
            if i > 2:
                break
        O[tx] = acc
