"""The programs in the documentation run as they stand."""

import re

import pytest
from conftest import ROOT

PRELUDE = """
import numpy as np
a = np.ones((256, 128), np.float16)
b = np.ones((128, 256), np.float16)
"""


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_first_program(page, program):
    text = re.search(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)[1]
    assert "import tilewright" in text
    done = program(PRELUDE + text)
    assert done.returncode == 0, done.stderr
