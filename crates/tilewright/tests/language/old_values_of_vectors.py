import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((256,), "float32"), C: T.Tensor((256,), "float32"), O: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        old = T.atomic_addx4(C[tx * 4], A[tx * 4], return_prev=True)
        O[tx * 4:tx * 4 + 4] = old
        two = T.atomic_addx2(C[tx * 4 + 2], A[tx * 4], return_prev=True)
        O[tx * 4] = T.extract_lane(two, 1)
