"""A convolution of images by hand: nested loops over the window, padding at the edges."""

import numpy as np
import tilelang
import tilelang.language as T


def reference(x, w, pad):
    n, h, wd, c = x.shape
    kh, kw, _, f = w.shape
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    out = np.zeros((n, h, wd, f), np.float32)
    for i in range(kh):
        for j in range(kw):
            out += np.einsum("nhwc,cf->nhwf", padded[:, i : i + h, j : j + wd], w[i, j])
    return out


@tilelang.jit(out_idx=[2])
def conv(N, H, W, C, F, K, pad):
    @T.prim_func
    def main(
        X: T.Tensor((N, H, W, C), "float32"),
        Kernel: T.Tensor((K, K, C, F), "float32"),
        Y: T.Tensor((N, H, W, F), "float32"),
    ):
        with T.Kernel(H, N, threads=64) as (h, n):
            acc = T.alloc_fragment((W, F), "float32")
            T.clear(acc)
            for i in T.serial(K):
                for j in T.serial(K):
                    for c in T.serial(C):
                        for w, f in T.Parallel(W, F):
                            row, column = h + i - pad, w + j - pad
                            if row >= 0 and row < H and column >= 0 and column < W:
                                acc[w, f] += X[n, row, column, c] * Kernel[i, j, c, f]
            for w, f in T.Parallel(W, F):
                Y[n, h, w, f] = acc[w, f]

    return main


rng = np.random.default_rng(0)
x = rng.integers(-2, 3, (2, 5, 6, 3)).astype(np.float32)
w = rng.integers(-2, 3, (3, 3, 3, 4)).astype(np.float32)
np.testing.assert_array_equal(conv(2, 5, 6, 3, 4, 3, 1)(x, w), reference(x, w, 1))
print("all close")
