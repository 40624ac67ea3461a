"""Matrix times vector, C = B @ A, from tiles down to single threads.

    A is (K,), B is (N, K), C is (N,).

    gemv            tiles: products in a fragment, then a row reduction
    gemv_splitk     threads: (block_N, reduce_threads) threads, the second axis splits K and is summed by an all-reduce
    gemv_vectorized the same with vector loads into registers
    gemv_shuffle    one warp for each row, summed by warp shuffles
    gemv_int8       int8 operands, int32 result, four products at a time (T.dp4a)

    tilewright run examples/gemv.py
    tilewright run examples/gemv.py --set N=100 --set K=333
    tilewright run examples/gemv.py:gemv_splitk --set N=50 --set K=70
    tilewright run examples/gemv.py:gemv_vectorized --set vec=4
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemv(N=512, K=1024, block_N=64, block_K=64, threads=128, dtype="float16", accum_dtype="float32"):
    @T.prim_func
    def kernel(A: T.Tensor((K,), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bn:
            A_shared = T.alloc_shared((block_K,), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            product = T.alloc_fragment((block_N, block_K), accum_dtype)
            total = T.alloc_fragment((block_N,), accum_dtype)

            T.clear(total)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[k * block_K], A_shared)
                T.copy(B[bn * block_N, k * block_K], B_shared)
                for i, j in T.Parallel(block_N, block_K):
                    product[i, j] = T.cast(A_shared[j], accum_dtype) * T.cast(B_shared[i, j], accum_dtype)
                T.reduce_sum(product, total, dim=1, clear=False)
            T.copy(total, C[bn * block_N])

    return kernel


@tilelang.jit(out_idx=[-1])
def gemv_splitk(N=512, K=1024, block_N=8, reduce_threads=16, dtype="float16", accum_dtype="float32"):
    @T.prim_func
    def kernel(A: T.Tensor((K,), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=(block_N, reduce_threads)) as bn:
            tn = T.get_thread_binding(0)
            tk = T.get_thread_binding(1)
            partial = T.alloc_local((1,), accum_dtype)
            total = T.alloc_local((1,), accum_dtype)

            T.clear(partial)
            for step in T.serial(T.ceildiv(K, reduce_threads)):
                k = step * reduce_threads + tk
                partial[0] += A[k].astype(accum_dtype) * B[bn * block_N + tn, k].astype(accum_dtype)

            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.cast(0, accum_dtype)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(
                    T.tvm_thread_allreduce(
                        T.uint32(1),
                        partial[0],
                        True,
                        total[0],
                        tk,
                        dtype="handle",
                    )
                )
            if tk == 0:
                C[bn * block_N + tn] = total[0]

    return kernel


@tilelang.jit(out_idx=[-1])
def gemv_vectorized(N=512, K=1024, block_N=4, reduce_threads=32, vec=8, dtype="float16", accum_dtype="float32"):
    @T.prim_func
    def kernel(A: T.Tensor((K,), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=(block_N, reduce_threads)) as bn:
            tn = T.get_thread_binding(0)
            tk = T.get_thread_binding(1)
            a = T.alloc_local((vec,), dtype)
            b = T.alloc_local((vec,), dtype)
            partial = T.alloc_local((1,), accum_dtype)
            total = T.alloc_local((1,), accum_dtype)

            T.clear(partial)
            for step in T.serial(T.ceildiv(K, reduce_threads * vec)):
                k = (step * reduce_threads + tk) * vec
                for v in T.vectorized(vec):
                    a[v] = A[k + v]
                    b[v] = B[bn * block_N + tn, k + v]
                for v in T.serial(vec):
                    partial[0] += a[v].astype(accum_dtype) * b[v].astype(accum_dtype)

            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.cast(0, accum_dtype)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), partial[0], True, total[0], tk, dtype="handle"))
            if tk == 0:
                C[bn * block_N + tn] = total[0]

    return kernel


@tilelang.jit(out_idx=[-1])
def gemv_shuffle(N=512, K=1024, warps=4, dtype="float16", accum_dtype="float32"):
    """A butterfly of shuffles: after exchanging with the lanes 16, 8, 4, 2 and 1 away, every lane has the sum."""

    @T.prim_func
    def kernel(A: T.Tensor((K,), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, warps), threads=warps * 32) as bn:
            for tx in T.thread_binding(0, warps * 32, thread="threadIdx.x"):
                lane = tx % 32
                row = bn * warps + tx // 32
                total = T.alloc_var(accum_dtype, 0)
                for step in T.serial(T.ceildiv(K, 32)):
                    k = step * 32 + lane
                    total += T.cast(A[k], accum_dtype) * T.cast(B[row, k], accum_dtype)
                for s in T.unroll(5):
                    total += T.tvm_warp_shuffle(T.uint32(0xFFFFFFFF), total, lane ^ (16 >> s), 32, 32)
                if lane == 0:
                    C[row] = total

    return kernel


@tilelang.jit(out_idx=[-1])
def gemv_int8(N=256, K=512, threads=64):
    assert K % 4 == 0, "T.dp4a takes four elements at a time"

    @T.prim_func
    def kernel(A: T.Tensor((K,), "int8"), B: T.Tensor((N, K), "int8"), C: T.Tensor((N,), "int32")):
        with T.Kernel(T.ceildiv(N, threads), threads=threads) as bn:
            row = bn * threads + T.get_thread_binding(0)
            a = T.alloc_local((4,), "int8")
            b = T.alloc_local((4,), "int8")
            total = T.alloc_local((1,), "int32")

            T.clear(total)
            for step in T.serial(K // 4):
                for v in T.vectorized(4):
                    a[v] = A[step * 4 + v]
                    b[v] = B[row, step * 4 + v]
                T.dp4a(a, b, total)
            C[row] = total[0]

    return kernel


def main():
    import torch

    a = torch.randn(4096, device="cuda", dtype=torch.float16)
    b = torch.randn(1024, 4096, device="cuda", dtype=torch.float16)
    for factory in (gemv, gemv_splitk, gemv_vectorized, gemv_shuffle):
        torch.testing.assert_close(factory(1024, 4096)(a, b), b @ a, rtol=1e-2, atol=1e-1)


if __name__ == "__main__":
    main()
