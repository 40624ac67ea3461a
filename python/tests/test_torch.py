"""Tensors of torch, where torch is installed; those of a GPU where there is one."""

import pytest

torch = pytest.importorskip("torch")

from torch_checks import CHECKS  # noqa: E402


@pytest.mark.parametrize("name", CHECKS)
def test_torch(name):
    if name.startswith("check_gpu") and not torch.cuda.is_available():
        pytest.skip("no GPU")
    CHECKS[name]()
