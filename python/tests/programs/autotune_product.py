"""Configurations as the product of lists, chosen with or without tuning by a flag."""

import argparse
import itertools

import numpy as np
import tilelang
import tilelang.language as T


def get_configs():
    block_M, block_N, num_stages, threads = [16, 32], [32], [1, 2], [32, 64]
    values = list(itertools.product(block_M, block_N, num_stages, threads))
    return [dict(zip(["block_M", "block_N", "num_stages", "threads"], v)) for v in values]


def build(M, N, K, tune):
    def kernel(block_M=None, block_N=None, num_stages=None, threads=None):
        @T.prim_func
        def main(
            A: T.Tensor((M, K), "float16"),
            B: T.Tensor((K, N), "float16"),
            C: T.Tensor((M, N), "float32"),
        ):
            with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
                a = T.alloc_shared((block_M, 16), "float16")
                b = T.alloc_shared((16, block_N), "float16")
                c = T.alloc_fragment((block_M, block_N), "float32")
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, 16), num_stages=num_stages):
                    T.copy(A[by * block_M, k * 16], a)
                    T.copy(B[k * 16, bx * block_N], b)
                    T.gemm(a, b, c)
                T.copy(c, C[by * block_M, bx * block_N])

        return main

    jitted = tilelang.jit(out_idx=[-1])(kernel)
    if tune:
        return tilelang.autotune(configs=get_configs(), warmup=3, rep=20)(jitted)()
    return jitted(32, 32, 1, 64)


parser = argparse.ArgumentParser()
parser.add_argument("--tune", action=argparse.BooleanOptionalAction, default=True)
args = parser.parse_args()
rng = np.random.default_rng(0)
a = rng.integers(-2, 3, (32, 48)).astype(np.float16)
b = rng.integers(-2, 3, (48, 32)).astype(np.float16)
tuned, plain = build(32, 32, 48, args.tune), build(32, 32, 48, False)
expected = a.astype(np.float32) @ b.astype(np.float32)
np.testing.assert_array_equal(tuned(a, b), expected)
np.testing.assert_array_equal(plain(a, b), expected)
if args.tune:
    assert tuned.config in get_configs()
    print("best config:", tuned.config)
    print("latency:", tuned.latency)
print("all close")
