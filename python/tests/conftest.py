"""What the tests share."""

import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).parent
ROOT = TESTS.parent.parent


@pytest.fixture
def program(tmp_path):
    """Runs a program text under `python -m tilewright` and returns what it left."""

    def run(text, *args):
        path = tmp_path / "program.py"
        path.write_text(text)
        return run_program(path, *args)

    return run


def run_program(path, *args):
    command = [sys.executable, "-m", "tilewright", str(path), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)
