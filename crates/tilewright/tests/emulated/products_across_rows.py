# not to: ds_read_u16 ds_read_u8 ds_read_i8
import tilelang.language as T
# Operands whose rows run across K, of two types. Sums are stored as they are and rounded, and added to memory.
@T.prim_func
def main(A: T.Tensor((64, 128), "bfloat16"), B: T.Tensor((64, 128), "bfloat16"), D: T.Tensor((128, 64), "int8"), E: T.Tensor((64, 128), "int8"), C: T.Tensor((128, 128), "float32"), H: T.Tensor((128, 128), "bfloat16"), S: T.Tensor((128, 128), "int32"), R: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads=256) as bx:
        a = T.alloc_shared((32, 128), "bfloat16")
        b = T.alloc_shared((32, 128), "bfloat16")
        d = T.alloc_shared((128, 32), "int8")
        e = T.alloc_shared((32, 128), "int8")
        c = T.alloc_fragment((128, 128), "float32")
        h = T.alloc_fragment((128, 128), "bfloat16")
        s = T.alloc_fragment((128, 128), "int32")
        T.clear(c)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[k * 32, 0], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c, transpose_A=True)
        T.copy(c, C)
        T.copy(c, h)
        T.copy(h, H)
        for i, j in T.Parallel(128, 128):
            T.atomic_add(R[i, j], c[i, j])
        T.clear(s)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(D[0, k * 32], d)
            T.copy(E[k * 32, 0], e)
            T.gemm(d, e, s)
        T.copy(s, S)
