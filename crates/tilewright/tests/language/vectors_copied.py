import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((4, 128), "float16"), O: T.Tensor((4, 128), "float16")):
    with T.Kernel(4, threads=16) as bx:
        tx = T.get_thread_binding()
        s = T.alloc_shared((128,), "float16")
        r = T.alloc_local((8,), "float16")
        s[tx * 8:tx * 8 + 8] = A[bx, tx * 8:tx * 8 + 8]
        T.sync_threads()
        r[0:8] = s[120 - tx * 8:128 - tx * 8]
        for i in T.serial(8):
            r[i] += 1.0
        O[bx, tx * 8:tx * 8 + 8] = r[0:8]
