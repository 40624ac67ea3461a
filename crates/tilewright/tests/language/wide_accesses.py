import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((512,), "float32"), H: T.Tensor((512,), "float16"), O: T.Tensor((512,), "float32"), P: T.Tensor((512,), "float16")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        s = T.alloc_shared((256,), "float32")
        T.sts128(s[tx * 4:tx * 4 + 4], T.ldg128(A[tx * 4:tx * 4 + 4]))
        T.sync_threads()
        T.stg128(O[tx * 4:tx * 4 + 4], T.lds128(s[252 - tx * 4]))
        T.stg64(O[256 + tx * 2], T.ldg64(A[256 + tx * 2]), pred=tx % 2 == 0)
        T.stg32(O[384 + tx], T.ldg32(A[384 + tx], pred=tx < 32))
        T.stg256(P[(tx % 16) * 16], T.ldg256(H[(tx % 16) * 16]))
        P[256 + tx * 2:256 + tx * 2 + 2] = T.reinterpret(T.float16x2, T.ldg32(H[256 + tx * 2]))
