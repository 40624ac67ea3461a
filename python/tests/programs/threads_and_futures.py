"""One kernel called from many threads, kernels compiled by a pool."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def power(N, exponent):
    @T.prim_func
    def kernel(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(T.ceildiv(N, 32), threads=32) as b:
            for i in T.Parallel(32):
                result = T.alloc_var("int32", init=1)
                for _ in T.serial(exponent):
                    result = result * A[b * 32 + i]
                B[b * 32 + i] = result

    return kernel


def check(job):
    n, exponent = job
    a = np.arange(n, dtype=np.int32) % 7
    np.testing.assert_array_equal(power(n, exponent)(a), a**exponent)
    return id(power(n, exponent))


jobs = [(n, e) for n in (10, 33, 64) for e in (1, 2, 3)] * 4
with ThreadPoolExecutor(8) as pool:
    made = list(pool.map(check, jobs))
assert len(set(made)) == 9
print("all close")
