"""A product whose rows are known at each call alone; one kernel serves all of them."""

import numpy as np
import tilelang
import tilelang.language as T
from tilelang import tvm as tvm


def make(K, N, block=32, dtype="float16"):
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((m, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(m, block), threads=64) as (bx, by):
            a = T.alloc_shared((block, 16), dtype)
            b = T.alloc_shared((16, block), dtype)
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(K // 16, num_stages=2):
                T.copy(A[by * block, k * 16], a)
                T.copy(B[k * 16, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    return tilelang.compile(main, out_idx=-1)


kernel = make(32, 64)
bits = tvm.DataType("float16").bits
for rows in (1, 17, 32, 65):
    rng = np.random.default_rng(rows)
    a = rng.integers(-2, 3, (rows, 32)).astype(np.float16)
    b = rng.integers(-2, 3, (32, 64)).astype(np.float16)
    c = kernel(a, b)
    assert c.shape == (rows, 64)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    print(f"{rows} rows of {32 * bits // 8} bytes")
print("all close")
