"""Kernels made from a file of settings: names of types, sizes, operations."""

import json
import operator
import pathlib
import tempfile

import numpy as np
import tilelang
import tilelang.language as T

SETTINGS = """
[
  {"name": "sum", "op": "add", "dtype": "float32", "shape": [3, 40], "block": [1, 32]},
  {"name": "product", "op": "mul", "dtype": "int32", "shape": [8, 8], "block": [4, 8]},
  {"name": "difference", "op": "sub", "dtype": "float16", "shape": [5, 7], "block": [2, 4]}
]
"""


def build(op, dtype, shape, block, **_):
    apply = getattr(operator, op)
    (m, n), (bm, bn) = shape, block

    @T.prim_func
    def kernel(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype), C: T.Tensor(shape, dtype)):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=32) as (bx, by):
            for i, j in T.Parallel(bm, bn):
                row, column = by * bm + i, bx * bn + j
                if row < m and column < n:
                    C[row, column] = apply(A[row, column], B[row, column])

    return kernel


with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "settings.json")
    path.write_text(SETTINGS)
    entries = json.loads(path.read_text())
kernels = {e["name"]: tilelang.compile(build(**e), out_idx=[-1]) for e in entries}
for entry in entries:
    a = (np.arange(np.prod(entry["shape"])) % 11).reshape(entry["shape"]).astype(entry["dtype"])
    expected = getattr(operator, entry["op"])(a, a + 1)
    np.testing.assert_array_equal(kernels[entry["name"]](a, a + 1), expected)
    print(entry["name"], kernels[entry["name"]].params)
print("all close")
