"""Products of batches, the batch in the third dimension of the grid, views without copies."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=-1)
def bmm(B, M, N, K, block=16, transposed=False):
    shape = (B, N, K) if transposed else (B, K, N)

    @T.prim_func
    def main(X: T.Tensor((B, M, K), "float16"), Y: T.Tensor(shape, "float16"), Z: T.Tensor((B, M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), B, threads=32) as (bx, by, batch):
            x = T.alloc_shared((block, K), "float16")
            y = T.alloc_shared((block, K) if transposed else (K, block), "float16")
            z = T.alloc_fragment((block, block), "float32")
            T.copy(X[batch, by * block, 0], x)
            if transposed:
                T.copy(Y[batch, bx * block, 0], y)
            else:
                T.copy(Y[batch, 0, bx * block], y)
            T.clear(z)
            T.gemm(x, y, z, transpose_B=transposed)
            T.copy(z, Z[batch, by * block, bx * block])

    return main


rng = np.random.default_rng(0)
x = rng.integers(-2, 3, (3, 32, 16)).astype(np.float16)
y = rng.integers(-2, 3, (3, 16, 32)).astype(np.float16)
expected = x.astype(np.float32) @ y.astype(np.float32)
np.testing.assert_array_equal(bmm(3, 32, 32, 16)(x, y), expected)
copied = np.ascontiguousarray(y.transpose(0, 2, 1))
np.testing.assert_array_equal(bmm(3, 32, 32, 16, transposed=True)(x, copied), expected)
print("all close")
