"""TileLang #2294 (and #2305): the largest magnitude of a bfloat16 row of 5 vectors a thread.

Two elements at a time are packed into one operation, with an index that skips some elements when the number of
rounds is odd. The row has its extreme at a different column in each row, so a skipped element shows.
"""

import tilelang
import tilelang.language as T


def kernel(M=16, rounds=5, vec=4, threads=32, dtype="bfloat16"):
    N = rounds * vec * threads

    @T.prim_func
    def absmax(X: T.Tensor((M, N), dtype), Y: T.Tensor((M,), dtype)):
        with T.Kernel(M, threads=threads) as bx:
            x = T.alloc_fragment((1, N), dtype)
            y = T.alloc_fragment((1,), dtype)

            T.annotate_layout(
                {
                    x: T.Fragment(
                        (1, N),
                        forward_thread_fn=lambda i, j: j // vec % threads,
                        forward_index_fn=lambda i, j: j // (vec * threads) * vec + j % vec,
                    )
                }
            )
            T.copy(X[bx, 0], x)
            T.reduce_absmax(x, y, dim=1)
            T.copy(y, Y[bx])

    return absmax
