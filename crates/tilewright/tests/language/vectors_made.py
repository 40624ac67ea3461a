import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((256,), "float32"), O: T.Tensor((256,), "bfloat16"), P: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        O[tx * 4:tx * 4 + 2] = T.bfloat16x2(A[tx * 4], A[tx * 4 + 1])
        O[tx * 4 + 2:tx * 4 + 4] = T.bfloat16x2(1.0, 2)
        v = T.float32x4(A[tx * 4], tx, 3.0, A[tx * 4 + 3])
        w = v + v
        P[tx * 4:tx * 4 + 4] = w
        P[tx * 4 + 1] = T.extract_lane(w, 0) + T.extract_lane(v, 1)
