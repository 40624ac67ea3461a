"""Calls on a GPU as a library like torch makes them, with a stub of the HIP runtime in whose memory
kernels are known by their name: what of a launch is the host's work is real."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, TESTS


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    """The folder of the stub."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler called cc")
    folder = tmp_path_factory.mktemp("stub")
    source = ROOT / "crates" / "runtime" / "tests" / "hip" / "stub.c"
    library = folder / "libamdhip64.so.7"
    command = ["cc", "-shared", "-fPIC", "-O1", "-w", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def said(stub, tmp_path):
    """What a part of `stub_calls.py` says, as JSON."""

    def run(name, **variables):
        command = [sys.executable, str(TESTS / "stub_calls.py"), name]
        env = dict(os.environ, TILEWRIGHT_HIP=str(stub), STUB_ARCH="gfx950", **variables)
        env["TILEWRIGHT_CACHE_DIR"] = str(tmp_path / "cache")
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
        if "no compiler" in done.stderr or "clang" in done.stderr.lower() and done.returncode:
            pytest.skip("needs clang for AMD")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_the_short_way_computes_the_same(said):
    assert said("values") == {"right": True, "short": True}


def test_the_short_way_refuses_what_the_long_way_refuses(said):
    assert said("refused") == ["arg-dtype", "arg-shape", "arg-device", "arg-unknown", "align"]


def test_outputs_are_made_by_the_library(said):
    assert said("outputs") == {"right": True, "fresh": True}


def test_workspaces_come_from_the_library(said):
    found = said("workspaces")
    assert found["right"] and found["short"] and found["of_the_driver"] == 0, found
    # The output, then the workspace, for each call.
    assert found["of_torch"] == [[[64, 256], [256, 1]], [[64 * 256 * 4], [1]]], found
    assert found["calls_of_torch"] == 10, found


def test_workspaces_are_kept_where_the_library_gives_none(said):
    assert said("workspaces_without_torch") == {"right": True, "of_the_driver": 0}


def test_workspaces_of_threads(said):
    assert said("workspaces_of_threads") == {"wrong": 0}


def test_threads(said):
    assert said("threads") == {"wrong": 0}


def test_dlpack(said):
    assert said("dlpack") == {"right": True}


def test_nothing_leaks(said):
    found = said("soak")
    assert found["live"] == 0 and found["grown_mb"] < 20, found


def test_a_call_takes_little_of_the_host(said):
    found = said("time")
    # In a build for tests, on a busy machine; `scripts/gpu-python` measures what is promised.
    assert found["us"] < 60, found


def test_an_executor_compiles(said):
    assert said("executor") == {"kept": 2, "hits": True, "foreign": False}


def test_tuning_on_a_gpu(said):
    found = said("tuned", STUB_ELEMENTS=str(416 * 128), STUB_WRONG_GRID="26", STUB_COST="1")
    assert found["config"] == {"block_M": 104}
    assert found["unit"] == "seconds" and found["latency"] == 5.0
    assert found["failed"] == [16, 32]
