import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((256,), "float32"), H: T.Tensor((256,), "float16"), O: T.Tensor((256,), "float32"), P: T.Tensor((256,), "float16")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        s = T.alloc_shared((256,), "float32")
        h = T.alloc_shared((256,), "float16")
        T.ptx_cp_async(T.access_ptr(s[tx * 4], "w", 4), T.access_ptr(A[tx * 4], "r", 4), 4)
        T.ptx_cp_async(T.access_ptr(h[tx * 4], "w", 4), T.access_ptr(H[tx * 4], "r", 4), 4, tx < 40)
        T.ptx_commit_group()
        T.ptx_wait_group(0)
        T.sync_threads()
        T.copy(s, O)
        T.copy(h, P)
