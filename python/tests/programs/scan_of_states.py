"""A recurrence along a sequence with a state in registers, checked step by step."""

import numpy as np
import tilelang
import tilelang.language as T


class Recurrence:
    """h[t] = decay * h[t-1] + x[t], for every channel."""

    def __init__(self, steps, channels, dtype="float32"):
        self.steps, self.channels, self.dtype = steps, channels, dtype

    @property
    def kernel(self):
        steps, channels, dtype = self.steps, self.channels, self.dtype

        @T.prim_func
        def scan(
            X: T.Tensor((steps, channels), dtype),
            decay: T.Tensor((channels,), dtype),
            H: T.Tensor((steps, channels), dtype),
        ):
            with T.Kernel(T.ceildiv(channels, 32), threads=32) as b:
                state = T.alloc_fragment((32,), dtype)
                T.clear(state)
                for t in T.serial(steps):
                    for c in T.Parallel(32):
                        state[c] = state[c] * decay[b * 32 + c] + X[t, b * 32 + c]
                        H[t, b * 32 + c] = state[c]

        return tilelang.compile(scan, out_idx=[2])

    def reference(self, x, decay):
        h, state = [], np.zeros(self.channels, self.dtype)
        for row in x:
            state = state * decay + row
            h.append(state)
        return np.stack(h)


scan = Recurrence(12, 64)
x = np.random.default_rng(0).integers(-3, 4, (12, 64)).astype(np.float32)
decay = np.linspace(0, 1, 64, dtype=np.float32)
np.testing.assert_allclose(scan.kernel(x, decay), scan.reference(x, decay), rtol=1e-5, atol=1e-5)
print("all close")
