import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((2, 256), "float32"), O: T.Tensor((2, 256), "float32")):
    with T.Kernel(2, threads=256) as bx:
        tx = T.get_thread_binding()
        s = T.alloc_shared((256,), "float32")
        if tx < 128:
            T.copy(A[bx, 0:128], s[0:128])
        else:
            for i in T.Parallel(128):
                s[128 + i] = A[bx, 128 + i] * 2.0
        T.copy(s, O[bx, 0])
