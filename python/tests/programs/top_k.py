"""The largest values of each row and where they are, found one after another."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1, 2])
def topk(M, N, k, block=4):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        Values: T.Tensor((M, k), "float32"),
        Indices: T.Tensor((M, k), "int32"),
    ):
        with T.Kernel(T.ceildiv(M, block), threads=64) as b:
            x = T.alloc_fragment((block, N), "float32")
            top = T.alloc_fragment((block,), "float32")
            place = T.alloc_fragment((block, N), "int32")
            best = T.alloc_fragment((block,), "int32")
            T.copy(X[b * block, 0], x)
            for turn in T.serial(k):
                T.reduce_max(x, top, dim=1)
                for i, j in T.Parallel(block, N):
                    place[i, j] = T.if_then_else(x[i, j] == top[i], j, -1)
                T.reduce_max(place, best, dim=1)
                for i, j in T.Parallel(block, N):
                    x[i, j] = T.if_then_else(j == best[i], -10000.0, x[i, j])
                for i in T.Parallel(block):
                    Values[b * block + i, turn] = top[i]
                    Indices[b * block + i, turn] = best[i]

    return main


x = np.random.default_rng(2).permutation(64).reshape(8, 8).astype(np.float32)
values, indices = topk(8, 8, 3)(x)
order = np.argsort(-x, axis=1)[:, :3]
np.testing.assert_array_equal(indices, order)
np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis=1))
print("all close")
