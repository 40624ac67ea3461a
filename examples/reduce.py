"""Reductions of a matrix, in every kind and direction the language has.

    reduce_rows     X (M, N) -> (M,), or (M, 1) with keep_dim: sum, max, min, abssum or absmax of each row
    reduce_columns  X (M, N) -> (N,): sum, max, min or absmax of each column, over row tiles
    reduce_bits     X (M, N) of integers -> (M,): and, or, xor of each row
    reduce_reducer  X (M, N) -> (M,): row sums through T.alloc_reducer, with rows longer than a tile
    reduce_tree     X (N,) -> (1,): the sum of everything, by threads in a shared-memory tree

    tilewright run examples/reduce.py
    tilewright run examples/reduce.py --set kind='"absmax"' --set N=77 --set keep_dim=True
    tilewright run examples/reduce.py:reduce_columns --set kind='"min"' --set M=100
    tilewright run examples/reduce.py:reduce_bits --set kind='"or"'
    tilewright run examples/reduce.py:reduce_tree --set N=1000
"""

import tilelang
import tilelang.language as T

ROW_KINDS = {
    "sum": T.reduce_sum,
    "max": T.reduce_max,
    "min": T.reduce_min,
    "abssum": T.reduce_abssum,
    "absmax": T.reduce_absmax,
}
BIT_KINDS = {"and": T.reduce_bitand, "or": T.reduce_bitor, "xor": T.reduce_bitxor}


@tilelang.jit(out_idx=[-1])
def reduce_rows(
    kind="sum",
    M=256,
    N=512,
    block_M=32,
    keep_dim=False,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    reduce = ROW_KINDS[kind]
    out_shape = (M, 1) if keep_dim else (M,)
    tile_shape = (block_M, 1) if keep_dim else (block_M,)

    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor(out_shape, accum_dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), dtype)
            y = T.alloc_fragment(tile_shape, accum_dtype)

            T.copy(X[bx * block_M, 0], x)
            reduce(x, y, dim=-1)
            if keep_dim:
                T.copy(y, Y[bx * block_M, 0])
            else:
                T.copy(y, Y[bx * block_M])

    return kernel


@tilelang.jit(out_idx=[-1])
def reduce_columns(
    kind="max",
    M=256,
    N=512,
    block_M=64,
    block_N=64,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    reduce = ROW_KINDS[kind]
    # The value that changes nothing: it starts the running result and stands in for missing rows.
    neutral = {"max": -T.infinity(accum_dtype), "min": T.infinity(accum_dtype)}.get(kind, 0.0)

    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor((N,), accum_dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
            x = T.alloc_fragment((block_M, block_N), accum_dtype)
            y = T.alloc_fragment((block_N,), accum_dtype)

            T.fill(y, neutral)
            for k in T.serial(T.ceildiv(M, block_M)):
                for i, j in T.Parallel(block_M, block_N):
                    x[i, j] = T.if_then_else(
                        k * block_M + i < M,
                        T.cast(X[k * block_M + i, bx * block_N + j], accum_dtype),
                        neutral,
                    )
                reduce(x, y, dim=0, clear=False)
            T.copy(y, Y[bx * block_N])

    return kernel


@tilelang.jit(out_idx=[-1])
def reduce_bits(kind="xor", M=128, N=256, block_M=32, threads=128, dtype="int32"):
    reduce = BIT_KINDS[kind]

    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_shared((block_M, N), dtype)
            y = T.alloc_shared((block_M,), dtype)

            T.copy(X[bx * block_M, 0], x)
            reduce(x, y, dim=1)
            T.copy(y, Y[bx * block_M])

    return kernel


def reduce_reducer(M=256, N=500, block_M=32, block_N=128, threads=128, dtype="float16", accum_dtype="float32"):
    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor((M,), accum_dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_shared((block_M, block_N), dtype)
            row_sum = T.alloc_reducer((block_M,), accum_dtype, op="sum", replication="all")

            T.clear(row_sum)
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[bx * block_M, k * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    row_sum[i] += T.cast(x[i, j], accum_dtype)
            T.finalize_reducer(row_sum)
            for i in T.Parallel(block_M):
                Y[bx * block_M + i] = row_sum[i]

    return kernel


def reduce_tree(N=4096, threads=128, dtype="float32"):
    """One block. A thread adds up its own stride of X, then the threads halve their number each round."""

    @T.prim_func
    def kernel(X: T.Tensor((N,), dtype), Y: T.Tensor((1,), dtype)):
        with T.Kernel(1, threads=threads) as bx:
            tx = T.get_thread_binding(0)
            partial = T.alloc_shared((threads,), dtype)
            own = T.alloc_var(dtype, 0)
            width = T.alloc_var("int32", threads)

            for k in T.serial(T.ceildiv(N, threads)):
                own += X[k * threads + tx]
            partial[tx] = own
            T.sync_threads()
            # The upper half hands its sums to the lower half; an odd one out waits for the next round.
            while width > 1:
                half = (width + 1) // 2
                if tx + half < width:
                    partial[tx] = partial[tx] + partial[tx + half]
                T.sync_threads()
                width = half
            if tx == 0:
                Y[bx] = partial[0]

    return kernel


def main():
    import torch

    x = torch.randn(1024, 512, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(reduce_rows("sum", 1024, 512)(x), x.float().sum(dim=1), rtol=1e-3, atol=1e-2)
    torch.testing.assert_close(reduce_columns("max", 1024, 512)(x), x.float().amax(dim=0))


if __name__ == "__main__":
    main()
