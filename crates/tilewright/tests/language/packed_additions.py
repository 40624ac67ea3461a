# emulated
# compiled to: global_atomic_pk_add_f16 global_atomic_pk_add_bf16 ds_pk_add_f16 ds_pk_add_bf16 global_atomic_add_f32 ds_add_f32
# not to: cmpswap cmpst
"""Additions to float16 and bfloat16, two at once and one by one, in global and in shared memory: whole rows
and rows of odd lengths, pairs that start at odd elements or reach over the end, and what was there before."""
import tilelang.language as T
@T.prim_func
def main(
    A: T.Tensor((8, 32), "float16"),
    B: T.Tensor((8, 31), "bfloat16"),
    F: T.Tensor((256,), "float32"),
    H: T.Tensor((8, 32), "float16"),
    G: T.Tensor((8, 31), "bfloat16"),
    E: T.Tensor((61,), "bfloat16"),
    U: T.Tensor((70,), "float16"),
    K: T.Tensor((256,), "float16"),
    W: T.Tensor((256,), "float32"),
    P: T.Tensor((2, 64), "bfloat16"),
    O: T.Tensor((2, 64), "bfloat16"),
    S: T.Tensor((2, 8, 32), "float16"),
    Q: T.Tensor((2, 13), "bfloat16"),
    R: T.Tensor((2, 16), "float32"),
):
    with T.Kernel(2, threads=64) as bx:
        tx = T.get_thread_binding(0)
        a = T.alloc_shared((8, 32), "float16")
        b = T.alloc_fragment((8, 31), "bfloat16")
        T.copy(A, a)
        T.copy(B, b)
        T.atomic_add(H, a)
        T.atomic_add(G, b)
        T.atomic_addx2(E[tx * 2], F[tx * 2])
        T.atomic_addx2(U[tx + bx], A[tx // 16, tx % 16 * 2])
        T.atomic_addx4(K[tx * 4], F[tx * 4])
        T.atomic_addx4(W[tx * 4], F[tx * 4])
        if tx < 32:
            old = T.atomic_addx2(P[bx, tx * 2], F[tx * 2], return_prev=True)
            O[bx, tx * 2 : tx * 2 + 2] = old
        s = T.alloc_shared((8, 32), "float16")
        q = T.alloc_shared((13,), "bfloat16")
        r = T.alloc_shared((16,), "float32")
        T.fill(s, 1)
        T.fill(q, -2)
        T.fill(r, 3)
        T.sync_threads()
        T.atomic_add(s, a)
        T.atomic_addx2(q[tx % 6 * 2], F[tx * 2])
        if tx < 32:
            T.atomic_add(q[12], F[tx])
        T.atomic_addx2(r[tx % 8 * 2], F[tx * 2])
        T.sync_threads()
        T.copy(s, S[bx, 0:8, 0:32])
        T.copy(q, Q[bx, 0:13])
        T.copy(r, R[bx, 0:16])
