# Results of atomic operations beside the tensor: the safe value.
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((100,), "int32"), B: T.Tensor((100,), "float32"), O: T.Tensor((256,), "int32"), P: T.Tensor((256,), "float32")):
    with T.Kernel(2, threads=128) as bx:
        tx = T.get_thread_binding(0)
        T.annotate_safe_value({B: 3.0})
        i = bx * 128 + tx
        old = T.atomic_add(A[i], i, return_prev=True)
        O[i] = old * 2
        P[i] = T.atomic_load(B[i])
