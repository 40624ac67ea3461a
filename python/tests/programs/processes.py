"""Worker processes that each compile and call their own kernels, started afresh."""

import multiprocessing

import numpy as np
import tilewright

tilewright.as_tilelang()

import tilelang  # noqa: E402
import tilelang.language as T  # noqa: E402


def work(n):
    @T.prim_func
    def squares(A: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                A[i] = i * i

    a = np.zeros(n, np.int32)
    tilelang.compile(squares)(a)
    return int(a.sum())


def main():
    sizes = [3, 10, 40]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(work, sizes)
    assert found == [sum(i * i for i in range(n)) for n in sizes], found
    print("all close")


if __name__ == "__main__":
    main()
