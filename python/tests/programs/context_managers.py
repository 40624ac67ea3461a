"""Python around and inside a kernel: context managers, generators, caches, walrus, f-strings."""

import contextlib
import functools

import numpy as np
import tilelang
import tilelang.language as T

TRACE = []


@contextlib.contextmanager
def section(name):
    TRACE.append(f"+{name}")
    yield len(TRACE)
    TRACE.append(f"-{name}")


def stages(n):
    for i in range(n):
        yield i, 2**i


@functools.cache
def table(n):
    TRACE.append("table")
    return tuple(i * i for i in range(n))


@tilelang.jit(out_idx=[-1])
def kernel_of(N, names=("scale", "shift")):
    @T.prim_func
    def kernel(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            x = T.alloc_fragment((N,), "int32")
            T.copy(A, x)
            with section("body") as depth:
                for i, power in stages(3):
                    for j in T.Parallel(N):
                        x[j] = x[j] + power * i
            if (count := len(names)) > 1:
                label = f"{count}:{'-'.join(names)}"
            for j in T.Parallel(N):
                B[j] = x[j] + table(4)[-1] + len(label) + depth

    return kernel


a = np.arange(32, dtype=np.int32)
found = kernel_of(32)(a)
assert TRACE == ["+body", "-body", "table"], TRACE
np.testing.assert_array_equal(found, a + 10 + 9 + len("2:scale-shift") + 1)
print("all close")
