"""The corpus as Python programs: what Python records is what the command line reads."""

import importlib.util
import inspect
import os
import subprocess
import sys

import numpy as np
import pytest
import tilewright
from conftest import ROOT
from tilewright import JITFunction, PrimFunc
from tilewright._autotune import TunedFunction

tilewright.as_tilelang()
COMMAND = os.environ.get("TILEWRIGHT", str(ROOT / "target" / "debug" / "tilewright"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def load(path):
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def body(ir):
    """The IR without the name of the function and the configurations that it was chosen from,
    and with its symbols in the order of their names: Python names them where they are used."""
    lines = [line for line in ir.splitlines()[1:] if not line.startswith("  attr autotune ")]
    symbols = [line for line in lines if line.startswith("  symbol ")]
    return sorted(symbols), [line for line in lines if not line.startswith("  symbol ")]


def recorded(module):
    """Kernels of a module that need no arguments, by the name of what makes them."""
    for name, value in vars(module).items():
        # The command line takes what stands in the file, and tunes only when it is asked to.
        if isinstance(value, TunedFunction):
            value = value.function
        if isinstance(value, JITFunction) and not value.is_eager:
            yield name, value().core.ir()
        elif isinstance(value, PrimFunc):
            yield name, value.script()
        elif inspect.isfunction(value) and value.__module__ == module.__name__ and name != "main":
            parameters = inspect.signature(value).parameters.values()
            if all(p.default is not p.empty for p in parameters):
                made = value()
                if isinstance(made, PrimFunc):
                    yield name, made.script()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_records_the_same(path):
    for name, ir in recorded(load(path)):
        command = [COMMAND, "compile", f"{path}:{name}"]
        told = subprocess.run(command, capture_output=True, text=True)
        assert told.returncode == 0, told.stderr
        assert body(ir) == body(told.stdout), name


def test_every_example_is_recorded():
    kernels = sum(len(list(recorded(load(path)))) for path in EXAMPLES)
    assert kernels >= 40


def test_eager_example():
    module = load(ROOT / "examples" / "gemm.py")
    a = np.random.default_rng(0).integers(-2, 3, (64, 32)).astype(np.float16)
    b = np.random.default_rng(1).integers(-2, 3, (32, 128)).astype(np.float16)
    expected = np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0)
    np.testing.assert_array_equal(module.matmul_relu(a, b), expected)
    ir = module.matmul_relu.compile(a, b).script()
    settings = ["--set", "M=64", "--set", "N=128", "--set", "K=32"]
    command = [COMMAND, "compile", f"{ROOT}/examples/gemm.py:matmul_relu", *settings]
    told = subprocess.run(command, capture_output=True, text=True)
    assert ir == told.stdout
