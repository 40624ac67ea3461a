"""Kernels checked by unittest, with subtests and a fixture."""

import io
import unittest

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def transpose(M, N, block=16, dtype="float32"):
    @T.prim_func
    def kernel(A: T.Tensor((M, N), dtype), B: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=64) as (bx, by):
            tile = T.alloc_shared((block, block), dtype)
            T.copy(A[by * block, bx * block], tile)
            for i, j in T.Parallel(block, block):
                if bx * block + i < N and by * block + j < M:
                    B[bx * block + i, by * block + j] = tile[j, i]

    return kernel


class TransposeTest(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(7)

    def test_shapes(self):
        for shape in ((16, 16), (16, 48), (20, 33)):
            with self.subTest(shape=shape):
                a = self.rng.standard_normal(shape).astype(np.float32)
                np.testing.assert_array_equal(transpose(*shape)(a), a.T)

    def test_a_wrong_shape_is_refused(self):
        with self.assertRaises(ValueError):
            transpose(16, 16)(np.zeros((16, 8), np.float32))


suite = unittest.defaultTestLoader.loadTestsFromTestCase(TransposeTest)
result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
assert result.wasSuccessful() and result.testsRun == 2, result.failures + result.errors
print("all close")
