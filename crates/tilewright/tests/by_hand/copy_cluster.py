"""Two blocks of a cluster of four have one load between them that is complete when it ends, twice, to a
tile that was read before."""

import tilelang.language as T


@T.prim_func
def copied(A: T.Tensor((512, 64), "float16"), B: T.Tensor((512, 64), "float16"), C: T.Tensor((512, 64), "float16"), D: T.Tensor((512, 64), "float16")):
    with T.Kernel(8, threads=128, cluster_dims=4) as bx:
        S = T.alloc_shared((64, 64), "float16")
        T.copy_cluster(A[bx * 64, 0], S)
        T.copy(S, B[bx * 64, 0])
        T.copy_cluster(A[bx * 64, 0], S, cluster_mask=0b0110)
        T.copy(S, C[bx * 64, 0])
        T.copy_cluster(A[bx * 64, 0], S, cluster_mask=0b1001)
        T.copy(S, D[bx * 64, 0])
