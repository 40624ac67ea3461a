"""Functions of tests, with the package's helpers, called by hand as `main` would."""

import numpy as np
import tilelang
import tilelang.language as T
import tilelang.testing


def cumulative(N, reverse):
    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((N,), "float32")
            T.copy(A, x)
            T.cumsum(x, dim=0, reverse=reverse)
            T.copy(x, B)

    return kernel


def run_cumsum(N, reverse=False):
    kernel = tilelang.compile(cumulative(N, reverse), out_idx=[1])
    a = np.random.randint(0, 5, N).astype(np.float32)
    expected = np.cumsum(a[::-1])[::-1] if reverse else np.cumsum(a)
    np.testing.assert_allclose(kernel(a), expected)


def test_cumsum():
    for n in (64, 128):
        run_cumsum(n)


def test_cumsum_reversed():
    run_cumsum(64, reverse=True)


@tilelang.testing.requires_cuda
def test_on_a_gpu():
    raise AssertionError("there is none")


if __name__ == "__main__":
    tilelang.testing.set_random_seed(42)
    test_cumsum()
    test_cumsum_reversed()
    print("all close")
