"""Counts how often each byte value occurs, with atomics.

    data is (N,) of uint8, counts is (256,) of int32.

Every block counts its own stretch of the data in shared memory, where atomics are cheap, and adds
its 256 counts to the result once. The first launch clears the result.

    tilewright run examples/histogram.py
    tilewright run examples/histogram.py --set N=1000 --set block=192
    tilewright run examples/histogram.py:histogram_bins --set bins=10
"""

import tilelang
import tilelang.language as T


def histogram(N=16384, block=1024, threads=256):
    bins = 256

    @T.prim_func
    def kernel(data: T.Tensor((N,), "uint8"), counts: T.Tensor((bins,), "int32")):
        with T.Kernel(1, threads=threads):
            T.clear(counts)

        with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
            local = T.alloc_shared((bins,), "int32")

            T.clear(local)
            for i in T.Parallel(block):
                # A position past the end would read as a zero byte and be counted as one.
                if bx * block + i < N:
                    T.atomic_add(local[T.cast(data[bx * block + i], "int32")], 1)
            for b in T.Parallel(bins):
                if local[b] > 0:
                    T.atomic_add(counts[b], local[b])

    return kernel


def histogram_bins(N=4096, bins=16, low=-1.0, high=1.0, block=512, threads=128, dtype="float32"):
    """Values in [low, high) fall into equal bins; the rest are counted in the first or the last one."""

    @T.prim_func
    def kernel(data: T.Tensor((N,), dtype), counts: T.Tensor((bins,), "int32")):
        with T.Kernel(1, threads=threads):
            T.clear(counts)

        with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
            local = T.alloc_shared((bins,), "int32")

            T.clear(local)
            for i in T.Parallel(block):
                position = (T.cast(data[bx * block + i], "float32") - low) * (bins / (high - low))
                b = T.clamp(T.cast(T.floor(position), "int32"), 0, bins - 1)
                if bx * block + i < N:
                    T.atomic_add(local[b], 1)
            T.atomic_add(counts, local)

    return kernel


def main():
    import torch

    data = torch.randint(0, 256, (1 << 20,), device="cuda", dtype=torch.uint8)
    kernel = tilelang.compile(histogram(1 << 20), out_idx=[-1])
    torch.testing.assert_close(kernel(data).long(), torch.bincount(data, minlength=256))


if __name__ == "__main__":
    main()
