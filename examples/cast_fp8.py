"""Casts a matrix to fp8 with one scale for each row and group of columns.

    X is (M, N); Y is (M, N) in fp8, scales is (M, ceil(N / group)) in float32;
    scales[i, g] = max(largest |X| in the group, 1e-4) / 448, Y[i, j] = fp8(X[i, j] / scales[i, j // group]).

448 is the largest finite float8_e4m3fn; X is about scales * Y again afterwards.

    tilewright run examples/cast_fp8.py
    tilewright run examples/cast_fp8.py --set M=70 --set N=300
"""

import tilewright as tilelang
import tilewright.language as T

FP8_MAX = 448.0


@tilelang.jit(out_idx=[-2, -1])
def cast_to_fp8(M=256, N=512, group=128, block_M=16, threads=128, dtype="bfloat16", out_dtype="float8_e4m3fn"):
    @T.prim_func
    def kernel(
        X: T.Tensor((M, N), dtype),
        Y: T.Tensor((M, N), out_dtype),
        scales: T.Tensor((M, T.ceildiv(N, group)), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, group), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            x = T.alloc_fragment((block_M, group), "float32")
            y = T.alloc_fragment((block_M, group), out_dtype)
            scale = T.alloc_fragment((block_M,), "float32")

            T.copy(X[by * block_M, bx * group], x)
            T.reduce_absmax(x, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.max(scale[i], 1e-4) / FP8_MAX
            for i, j in T.Parallel(block_M, group):
                y[i, j] = T.clamp(x[i, j] / scale[i], -FP8_MAX, FP8_MAX)
            T.copy(y, Y[by * block_M, bx * group])
            for i in T.Parallel(block_M):
                scales[by * block_M + i, bx] = scale[i]

    return kernel


def main():
    import torch

    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    y, scales = cast_to_fp8(4096, 4096)(x)
    torch.testing.assert_close(y.float() * scales.repeat_interleave(128, dim=1), x.float(), rtol=0.07, atol=0.05)


if __name__ == "__main__":
    main()
