"""Whole programs, run unchanged as TileLang's users write them: each checks its own results."""

import pytest
from conftest import TESTS, run_program

PROGRAMS = sorted((TESTS / "programs").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path):
    done = run_program(path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "all close"


def test_arguments_reach_the_program():
    done = run_program(TESTS / "programs" / "lazy_gemm.py", "--m", "32", "--k", "96")
    assert done.returncode == 0, done.stderr
    done = run_program(TESTS / "programs" / "lazy_gemm.py", "--m", "none")
    assert done.returncode == 2 and "invalid int value" in done.stderr


def test_programs_that_fail_say_so(program):
    done = program("import sys, tilelang\nsys.exit(3)\n")
    assert done.returncode == 3
    done = program("import tilelang.nothing_like_this\n")
    assert done.returncode == 1
    assert "Tilewright has no module 'tilewright.nothing_like_this'" in done.stderr
    done = run_program("nowhere.py")
    assert done.returncode == 2 and "there is no file nowhere.py" in done.stderr
