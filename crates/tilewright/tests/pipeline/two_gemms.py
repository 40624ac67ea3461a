"""The second tile is copied between two gemms."""

import tilelang.language as T


def kernel(num_stages=2):
    @T.prim_func
    def main(Q: T.Tensor((32, 32), "float16"), K: T.Tensor((4, 32, 32), "float16"), V: T.Tensor((4, 32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            Q_shared = T.alloc_shared((32, 32), "float16")
            K_shared = T.alloc_shared((32, 32), "float16")
            V_shared = T.alloc_shared((32, 32), "float16")
            P_shared = T.alloc_shared((32, 32), "float16")
            s = T.alloc_fragment((32, 32), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            T.copy(Q, Q_shared)
            T.clear(acc)
            for k in T.Pipelined(4, num_stages=num_stages):
                T.copy(K[k, 0, 0], K_shared)
                T.gemm(Q_shared, K_shared, s, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(32, 32):
                    P_shared[i, j] = T.cast(T.if_then_else(s[i, j] > 400, 1, -1), "float16")
                T.copy(V[k, 0, 0], V_shared)
                T.gemm(P_shared, V_shared, acc)
            T.copy(acc, C)
    return main
