"""Two-dimensional convolution as a matrix multiplication over gathered patches (im2col).

    data is (batch, H, W, C), weights (kernel, kernel, C, F), out (batch, OH, OW, F), with
    OH = (H + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 and OW likewise;
    out[n, y, x, f] = sum over r, s, c of
        data[n, y * stride + r * dilation - pad, x * stride + s * dilation - pad, c] * weights[r, s, c, f],
    where data outside the image counts as zero.

A row of the product is an output pixel, a column is a filter, and the depth runs over kernel,
kernel and channel. T.im2col brings one tile of patches to shared memory without storing them all.

    tilewright run examples/convolution.py
    tilewright run examples/convolution.py --set H=13 --set W=9 --set C=5 --set F=20 --set stride=2
    tilewright run examples/convolution.py --set kernel=5 --set pad=2 --set dilation=2
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def convolution(
    batch=2,
    H=16,
    W=16,
    C=32,
    F=64,
    kernel=3,
    stride=1,
    dilation=1,
    pad=1,
    block_M=64,
    block_N=64,
    block_K=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    reach = dilation * (kernel - 1) + 1
    OH = (H + 2 * pad - reach) // stride + 1
    OW = (W + 2 * pad - reach) // stride + 1
    pixels = batch * OH * OW
    depth = kernel * kernel * C

    @T.prim_func
    def conv(
        data: T.Tensor((batch, H, W, C), dtype),
        weights: T.Tensor((kernel, kernel, C, F), dtype),
        out: T.Tensor((batch, OH, OW, F), dtype),
    ):
        with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(pixels, block_M), threads=threads) as (bx, by):
            patches = T.alloc_shared((block_M, block_K), dtype)
            weight_tile = T.alloc_shared((block_K, block_N), dtype)
            acc = T.alloc_fragment((block_M, block_N), accum_dtype)
            weights_flat = T.reshape(weights, (depth, F))
            out_flat = T.reshape(out, (pixels, F))

            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(depth, block_K), num_stages=num_stages):
                T.im2col(data, patches, by, k, kernel, stride, dilation, pad)
                T.copy(weights_flat[k * block_K, bx * block_N], weight_tile)
                T.gemm(patches, weight_tile, acc)
            T.copy(acc, out_flat[by * block_M, bx * block_N])

    return conv


def main():
    import torch

    data = torch.randn(4, 64, 64, 128, device="cuda", dtype=torch.float16)
    weights = torch.randn(3, 3, 128, 128, device="cuda", dtype=torch.float16)
    expected = torch.conv2d(data.permute(0, 3, 1, 2), weights.permute(3, 2, 0, 1), padding=1)
    kernel = convolution(4, 64, 64, 128, 128)
    torch.testing.assert_close(kernel(data, weights), expected.permute(0, 2, 3, 1), rtol=1e-2, atol=1e-1)


if __name__ == "__main__":
    main()
