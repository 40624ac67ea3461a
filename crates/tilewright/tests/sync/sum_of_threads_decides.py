import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((128,), "int32"), O: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=128) as bx:
        tx = T.get_thread_binding()
        S = T.alloc_shared((128,), "int32")
        acc = T.alloc_var("int32", init=0)
        total = T.alloc_local((1,), "int32")
        with T.attr(T.comm_reducer(lambda x, y: x + y, [T.int32(0)]), "reduce_scope", T.reinterpret(T.uint64(0), dtype="handle")):
            T.evaluate(T.tvm_thread_allreduce(T.uint32(1), A[tx], True, total[0], tx, dtype="handle"))
        if total[0] != 0:
            S[tx] = A[tx]
            acc = acc + S[127 - tx]
        O[tx] = acc + total[0]
