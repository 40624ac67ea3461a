"""Tensors of torch, where torch is installed; those of a GPU where there is one."""

import pytest

torch = pytest.importorskip("torch")

from conftest import TESTS, run_program  # noqa: E402
from torch_checks import CHECKS  # noqa: E402

PROGRAMS = sorted((TESTS / "torch_programs").glob("*.py"))


@pytest.mark.parametrize("name", CHECKS)
def test_torch(name):
    if name.startswith("check_gpu") and not torch.cuda.is_available():
        pytest.skip("no GPU")
    CHECKS[name]()


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path):
    done = run_program(path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "all close"
