import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((384,), "float32"), O: T.Tensor((384,), "float32")):
    with T.Kernel(1, threads=384):
        group = T.get_warp_group_idx()
        s = T.alloc_shared((384,), "float32")
        if group == 0:
            T.copy(A[0:128], s[0:128])
        elif group == 1:
            T.copy(A[128:256], s[128:256])
        else:
            T.fill(s[256:384], 7.0)
        T.copy(s, O)
