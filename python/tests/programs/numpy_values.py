"""Values that only numpy and Python can compute, used inside a kernel."""

import collections
import itertools
import re
import string

import numpy as np
import tilelang
import tilelang.language as T

TABLE = np.array([[1, 2], [3, 4]])
Point = collections.namedtuple("Point", "x y")


@tilelang.jit(out_idx=[-1])
def kernel_of(name):
    origin = Point(3, 4)
    width = int(re.match(r"w(\d+)", name).group(1))

    @T.prim_func
    def kernel(A: T.Tensor((width,), "int32"), B: T.Tensor((width,), "int32")):
        with T.Kernel(1, threads=width):
            total = T.alloc_var("int32", init=0)
            for a, b in itertools.product(range(2), repeat=2):
                total += TABLE[a, b]
            for i in T.Parallel(width):
                B[i] = (
                    A[i] * TABLE.sum()
                    + origin.x
                    + len(TABLE.shape)
                    + np.int64(7)
                    + len(string.ascii_lowercase.partition("m")[0])
                    + divmod(TABLE.max(), 3)[1]
                    + total
                )

    return kernel


a = np.arange(16, dtype=np.int32)
np.testing.assert_array_equal(kernel_of("w16")(a), a * 10 + 3 + 2 + 7 + 12 + 1 + 10)
print("all close")
