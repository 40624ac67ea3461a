"""A benchmark with a command line: argparse, a reference, the profiler, TFLOP/s at the end."""

import argparse

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_M, block_N, block_K, dtype="float16", accum_dtype="float32"):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        C: T.Tensor((M, N), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[bx * block_N, ko * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def ref_program(A, B):
    wide = [X.float() if hasattr(X, "float") else X.astype(np.float32) for X in (A, B)]
    return wide[0] @ wide[1].T


def main(argv=None):
    parser = argparse.ArgumentParser(description="Benchmark a product")
    parser.add_argument("--m", type=int, default=64)
    parser.add_argument("--n", type=int, default=64)
    parser.add_argument("--k", type=int, default=64)
    parser.add_argument("--bench", action="store_true", default=True)
    args = parser.parse_args(argv)
    kernel = matmul(args.m, args.n, args.k, 32, 32, 32)
    profiler = kernel.get_profiler(tensor_supply_type=tilelang.TensorSupplyType.Normal)
    profiler.assert_allclose(ref_program, rtol=1e-2, atol=1e-2)
    if args.bench:
        latency = profiler.do_bench(warmup=1, rep=1)
        reference = profiler.do_bench(ref_program, warmup=1, rep=1)
        flops = 2 * args.m * args.n * args.k
        print(f"tilelang: {latency:.3f} ms, {flops / latency * 1e-9:.6f} TFLOP/s")
        print(f"reference: {reference:.3f} ms")
    print("all close")


if __name__ == "__main__":
    main()
