"""The programs in the documentation run as they stand."""

import json
import re

import pytest
from conftest import ROOT, run_program

PRELUDE = """
import numpy as np
a = np.ones((256, 128), np.float16)
b = np.ones((128, 256), np.float16)
"""


PAGES = ["README.md", "docs/python.md", "docs/coming-from-triton.md"]


@pytest.mark.parametrize("page", PAGES)
def test_first_program(page, program):
    text = re.search(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)[1]
    assert "import tilewright" in text
    done = program(PRELUDE + text)
    assert done.returncode == 0, done.stderr


def test_notebook(tmp_path):
    """The cells of the tutorial, one after another, each with a source as notebooks give it."""
    notebook = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text())
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert len(cells) >= 8 and not any(c["outputs"] for c in cells)
    runner = tmp_path / "notebook.py"
    runner.write_text(
        f"""
import json
import linecache
import tilewright

names = {{"__name__": "__main__"}}
for number, text in enumerate(json.loads({json.dumps(["".join(c["source"]) for c in cells])!r})):
    name = f"<cell {{number}}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), names)
print("whole")
"""
    )
    done = run_program(runner)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("whole\n")
