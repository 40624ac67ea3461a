"""The package itself: its stub, its imports, its values."""

import ast
import copy
import pathlib
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
import tilewright
import tilewright.language as T
from conftest import ROOT
from tilewright import _reference, _stubs

PACKAGE = pathlib.Path(tilewright.__file__).parent


def test_the_stub_is_what_the_table_says():
    assert (PACKAGE / "language" / "__init__.pyi").read_text() == _stubs.text()


def test_the_reference_is_what_the_docstrings_say():
    page = ROOT / "docs" / "python-api.md"
    assert page.read_text() == _reference.text(), "python -m tilewright._reference > docs/python-api.md"


def test_the_reference_misses_nothing(monkeypatch):
    assert _reference.unlisted() == []

    def quiet():
        pass

    monkeypatch.setattr(tilewright, "quiet", quiet, raising=False)
    with pytest.raises(_reference.Undocumented, match="`tilewright.quiet` is on no section"):
        _reference.text()
    monkeypatch.delattr(tilewright, "quiet")
    monkeypatch.setattr(tilewright, "cdiv", quiet)
    with pytest.raises(_reference.Undocumented, match="`tilewright.cdiv` has no docstring"):
        _reference.text()
    monkeypatch.undo()
    monkeypatch.setattr(tilewright.JITKernel, "quiet", quiet, raising=False)
    with pytest.raises(_reference.Undocumented, match="`tilewright.JITKernel.quiet`"):
        _reference.text()


def test_the_stub_names_everything():
    tree = ast.parse(_stubs.text())
    names = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    names |= {n.target.id for n in ast.walk(tree) if isinstance(n, ast.AnnAssign)}
    for name in ("copy", "gemm", "Parallel", "float16", "GemmWarpPolicy", "Tensor", "ceildiv"):
        assert name in names, name
    missing = [n for n in T.__all__ if n not in names]
    own = {"prim_func", "macro", "inline", "PrimFunc", "Macro", "Deferred", "LanguageFunction"}
    assert set(missing) <= own | {"dtype", "TensorLike", "PrimExpr"}, missing


def test_importing_is_quick_and_brings_no_torch():
    code = "import sys, tilewright; print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False False\n", done.stderr


def test_dtypes():
    assert T.float16 == "float16" == T.dtype("half") and T.float16 != "float32"
    assert T.float16 == np.float16 and T.float32 == np.dtype("float32") and T.int32 == int
    assert {T.float16: 1}["float16"] == 1
    assert (T.bfloat16.bits, T.bfloat16.itemsize, T.int8x4.lanes) == (16, 2, 4)
    assert T.float16.as_numpy() == np.dtype("float16")
    assert pickle.loads(pickle.dumps(T.float16)) == T.float16 and copy.deepcopy(T.int8) == T.int8
    with pytest.raises(ValueError, match="not the name of a dtype"):
        T.dtype("float17")
    with pytest.raises(TypeError, match="ml_dtypes"):
        sys.modules["ml_dtypes"] = None
        try:
            T.bfloat16.as_numpy()
        finally:
            del sys.modules["ml_dtypes"]


def test_what_is_kept_says_what_it_is():
    n = T.dynamic("n")
    assert repr(T.Tensor((n, 4), "float16")) == "T.Tensor((T.dynamic('n'), 4), 'float16')"
    assert T.Tensor((n, 4), "float16").shape[1] == 4
    assert T.Tensor((n, 4), "float16").dtype == T.float16
    assert repr(n + 1) == "add(T.dynamic('n'), 1)"
    assert T.max(3, 4) == 4 and T.ceildiv(7, 2) == 4


def test_pickled_language_functions():
    assert pickle.loads(pickle.dumps(T.copy)) is T.copy


def test_as_tilelang_gives_the_same_modules():
    tilewright.as_tilelang()
    tilewright.as_tilelang()
    import tilelang
    import tilelang.language

    assert tilelang is tilewright and tilelang.language is T


def test_a_kernel_is_recorded_in_little_time():
    start = time.perf_counter()
    for n in range(20):

        @T.prim_func
        def kernel(A: T.Tensor((n + 1,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(n + 1):
                    A[i] = i

    assert (time.perf_counter() - start) / 20 < 0.1


def test_warnings_are_pythons():
    with pytest.warns(tilewright.TilewrightWarning, match="fraction is dropped"):

        @T.prim_func
        def kernel(A: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=4):
                for i in T.Parallel(4):
                    A[i] = 1.5

        tilewright.compile(kernel)


def test_deep_and_circular_values_are_errors():
    value = T.dynamic("n")
    for _ in range(10_000):
        value = value + 1
    ring = []
    ring.append(ring)
    for bad in (value, ring):
        with pytest.raises(tilewright.TilewrightError):

            @T.prim_func
            def kernel(A: T.Tensor((4,), "float32")):
                with T.Kernel(1, threads=4):
                    A[0] = T.max(bad, 0)


def test_stand_ins(tmp_path):
    tilewright.as_tilelang()
    from tilelang import tvm
    from tilelang.carver.arch import driver

    assert tvm.DataType("float16").bits == 16
    assert str(tvm.target.Target("cuda -arch=sm_90a")) == "sm_90a"
    tilewright.compile(
        _doubled(), target=tvm.target.Target("hip")
    ).get_kernel_source().index("doubled")
    torch = pytest.importorskip("torch") if "torch" in sys.modules else None
    if torch is None:
        with pytest.raises(RuntimeError, match="torch"):
            driver.get_num_sms()


def _doubled():
    @T.prim_func
    def doubled(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=4):
            for i in T.Parallel(4):
                A[i] = A[i] * 2

    return doubled


def test_programs_of_tests(tmp_path):
    path = tmp_path / "test_it.py"
    path.write_text(
        """
import numpy as np
import tilelang
import tilelang.testing

def test_passes():
    tilelang.testing.set_random_seed(0)

@tilelang.testing.requires_cuda
@tilelang.testing.requires_rocm
def test_skipped():
    raise AssertionError

if __name__ == "__main__":
    tilelang.testing.main()
"""
    )
    command = [sys.executable, "-m", "tilewright", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "1 passed, 1 skipped" in done.stdout, done.stdout
    command = [sys.executable, "-m", "tilewright", "-m", "pytest", "-q", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "1 passed, 1 skipped" in done.stdout, done.stdout
