"""A factory with options, called from `main` with arguments of the command line."""

import argparse

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_M, block_N, block_K, dtype=T.float16, accum_dtype=T.float32):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--m", type=int, default=64)
    parser.add_argument("--n", type=int, default=96)
    parser.add_argument("--k", type=int, default=64)
    args = parser.parse_args()
    kernel = matmul(args.m, args.n, args.k, 32, 32, 32)
    assert matmul(args.m, args.n, args.k, 32, 32, 32) is kernel
    a = np.random.default_rng(0).integers(-3, 4, (args.m, args.k)).astype(np.float16)
    b = np.random.default_rng(1).integers(-3, 4, (args.k, args.n)).astype(np.float16)
    c = kernel(a, b)
    assert c.dtype == np.float16
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16))
    assert "gemm" in kernel.script() and "__global__" in kernel.get_kernel_source()
    print("all close")


if __name__ == "__main__":
    main()
