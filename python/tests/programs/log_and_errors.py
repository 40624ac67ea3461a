"""A program that handles what goes wrong: located errors, warnings, a log."""

import logging
import warnings

import numpy as np
import tilelang
import tilelang.language as T

log = logging.getLogger("program")
records = []
handler = logging.Handler()
handler.emit = lambda record: records.append(record.getMessage())
log.addHandler(handler)
tilelang.set_log_level("WARNING")


def attempt(block):
    @tilelang.jit(out_idx=[1], target="sim:sm_80")
    def factory(n):
        @T.prim_func
        def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=32) as b:
                tile = T.alloc_shared((block * 1024,), "float32")
                for i in T.Parallel(block):
                    tile[i] = A[b * block + i]
                for i in T.Parallel(block):
                    B[b * block + i] = tile[i]

        return kernel

    return factory


a = np.arange(64, dtype=np.float32)
for block in (128, 16):
    try:
        result = attempt(block)(64)(a)
        break
    except tilelang.TilewrightError as error:
        log.warning("%s at line %s", error.code, error.line)
np.testing.assert_array_equal(result, a)
assert len(records) == 1 and records[0].startswith("shared-memory-limit at line "), records
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")

    @T.prim_func
    def rounded(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=4):
            for i in T.Parallel(4):
                A[i] = 2.5

    tilelang.compile(rounded)
assert any("fraction" in str(w.message) for w in caught)
print("all close")
