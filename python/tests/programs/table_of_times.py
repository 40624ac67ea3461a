"""A table of sizes and times as a benchmark prints it, written as CSV and read again."""

import csv
import io

import numpy as np
import tilelang
import tilelang.language as T
from tilelang.profiler import do_bench

SIZES = [(8, 32), (16, 64)]


@tilelang.jit(out_idx=[1])
def row_sums(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(M, threads=32) as row:
            x = T.alloc_fragment((1, N), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(A[row, 0], x)
            T.reduce_sum(x, total, dim=1)
            T.copy(total, B[row : row + 1])

    return main


def benchmark(out):
    writer = csv.DictWriter(out, ["M", "N", "ours", "numpy"])
    writer.writeheader()
    for m, n in SIZES:
        a = np.ones((m, n), np.float32)
        kernel = row_sums(m, n)
        np.testing.assert_array_equal(kernel(a), a.sum(axis=1))
        times = [do_bench(f, _n_warmup=1, _n_repeat=3) for f in (lambda: kernel(a), lambda: a.sum(axis=1))]
        writer.writerow({"M": m, "N": n, "ours": f"{times[0]:.4f}", "numpy": f"{times[1]:.4f}"})


out = io.StringIO()
benchmark(out)
rows = list(csv.DictReader(io.StringIO(out.getvalue())))
assert [(int(r["M"]), int(r["N"])) for r in rows] == SIZES
assert all(float(r["ours"]) > 0 for r in rows)
print(out.getvalue())
print("all close")
