"""Small types, bits, casts: packed four-bit weights unpacked in a kernel."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def unpack(N, K, storage=T.uint8, out=T.float16):
    per = 8 // 4

    def nibble(byte, which):
        return (byte >> T.cast(which * 4, storage)) & T.cast(0xF, storage)

    @T.prim_func
    def kernel(W: T.Tensor((N, K // per), storage), S: T.Tensor((N,), out), B: T.Tensor((N, K), out)):
        with T.Kernel(N, threads=32) as row:
            for j in T.Parallel(K):
                signed = T.cast(nibble(W[row, j // per], j % per), "int32") - 8
                B[row, j] = T.cast(signed, out) * S[row]

    return kernel


rng = np.random.default_rng(0)
w = rng.integers(0, 256, (4, 16)).astype(np.uint8)
s = rng.integers(1, 4, 4).astype(np.float16)
halves = np.stack([w & 15, w >> 4], axis=-1).reshape(4, 32).astype(np.float16) - 8
np.testing.assert_array_equal(unpack(4, 32)(w, s), halves * s[:, None])
print("all close")
