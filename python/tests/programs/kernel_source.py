"""What is compiled: the source printed, searched, and written to files."""

import contextlib
import io
import pathlib
import tempfile

import tilelang
import tilelang.language as T


def build(target):
    @T.prim_func
    def negate(A: T.Tensor((256,), "float16"), B: T.Tensor((256,), "float16")):
        with T.Kernel(2, threads=128) as b:
            for i in T.Parallel(128):
                B[b * 128 + i] = -A[b * 128 + i]

    return tilelang.compile(negate, out_idx=[1], target=target)


kernel = build("cuda")
source = kernel.get_kernel_source()
assert "__global__" in source and "negate" in source
shown = io.StringIO()
with contextlib.redirect_stdout(shown):
    kernel.show_source()
assert shown.getvalue().strip() == source.strip()
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "negate.cu"
    kernel.export_sources(kernel_path=path)
    assert path.read_text() == source
assert build("hip").get_kernel_source() != source
assert "kernel grid(b: 2)" in kernel.script()
print(f"{len(source.splitlines()) > 5}")
print("all close")
