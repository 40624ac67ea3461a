"""The eager style: sizes from the tensors, one kernel for each set of them."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def matmul_relu(A, B, block_M: int = 32, block_N: int = 32, block_K: int = 32, relu: bool = True):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C = T.empty([M, N], T.float32)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), T.float16)
        B_shared = T.alloc_shared((block_K, block_N), T.float16)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        if relu:
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j], 0)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


rng = np.random.default_rng(0)
for m, n, k in [(32, 64, 32), (64, 32, 96)]:
    a = rng.integers(-3, 4, (m, k)).astype(np.float16)
    b = rng.integers(-3, 4, (k, n)).astype(np.float16)
    product = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(matmul_relu(a, b), np.maximum(product, 0))
    np.testing.assert_array_equal(matmul_relu(a, b, relu=False), product)
    assert matmul_relu.compile(a, b) is matmul_relu.compile(a, b)


def doubled(kind):
    """What only an annotation in the body names is known too."""

    @tilelang.jit
    def kernel(X):
        N = T.const("N")
        X: T.Tensor[[N], kind]
        Y = T.empty([N], "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                Y[i] = X[i] * 2
        return Y

    return kernel


x = np.arange(10)
np.testing.assert_array_equal(doubled("int32")(x.astype(np.int32)), x * 2)
np.testing.assert_array_equal(doubled(np.float16)(x.astype(np.float16)), x * 2)
print("all close")
