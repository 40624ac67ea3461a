# compiled to: v_accvgpr_read_b32 v_accvgpr_write_b32
# A wave has 256 registers of sums: each has a number. Elements are loaded, changed between products and
# stored; each waits for the matrix instructions before it.
import tilelang.language as T


@T.prim_func
def sums_by_number(
    A: T.Tensor((256, 64), "float16"),
    B: T.Tensor((256, 64), "float16"),
    D: T.Tensor((256, 256), "float32"),
    C: T.Tensor((256, 256), "float32"),
):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared((256, 32), "float16")
        b = T.alloc_shared((256, 32), "float16")
        c = T.alloc_fragment((256, 256), "float32")
        T.copy(D, c)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[0, k * 32], a)
            T.copy(B[0, k * 32], b)
            T.gemm(a, b, c, transpose_B=True)
            for i, j in T.Parallel(256, 256):
                c[i, j] = c[i, j] * 2 - 1
        T.copy(c, C)
