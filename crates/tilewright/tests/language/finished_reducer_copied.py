import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((64, 32), "float32"), O: T.Tensor((2, 64), "float32"), P: T.Tensor((64,), "float16")):
    with T.Kernel(1, threads=128):
        total = T.alloc_reducer((64,), "float32", "sum")
        f = T.alloc_fragment((64,), "float16")
        T.clear(total)
        for i, j in T.Parallel(64, 32):
            total[i] += A[i, j]
        T.finalize_reducer(total)
        T.copy(total, O[1, 0])
        T.copy(total, f)
        T.copy(f, P)
