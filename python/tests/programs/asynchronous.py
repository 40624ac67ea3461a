"""Calls from coroutines, by the threads of an event loop."""

import asyncio

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def halve(X):
    N = T.const("N")
    X: T.Tensor[[N], T.float32]
    Y = T.empty([N], T.float32)
    with T.Kernel(T.ceildiv(N, 32), threads=32) as b:
        for i in T.Parallel(32):
            Y[b * 32 + i] = X[b * 32 + i] / 2
    return Y


async def request(n):
    x = np.arange(n, dtype=np.float32)
    y = await asyncio.to_thread(halve, x)
    np.testing.assert_array_equal(y, x / 2)
    return n


async def built():
    """A kernel made inside a coroutine, with a function of an `except` clause."""
    try:
        raise LookupError
    except LookupError:
        step = lambda x: x + 1  # noqa: E731

    @T.prim_func
    def kernel(A: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                A[i] = step(A[i])

    a = np.zeros(8, np.float32)
    await asyncio.to_thread(tilelang.compile(kernel), a)
    assert (a == 1).all()


async def main():
    await built()
    done = await asyncio.gather(*(request(n) for n in (5, 32, 100, 5)))
    assert done == [5, 32, 100, 5]


asyncio.run(main())
print("all close")
