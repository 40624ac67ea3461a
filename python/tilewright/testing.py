"""What tests of kernels use."""

import functools
import inspect
import sys


def main():
    """Runs the tests of the calling file by pytest, with the arguments of the command line, and
    ends the program with its status."""
    import pytest

    path = inspect.getsourcefile(sys._getframe(1))
    sys.exit(pytest.main([path, *sys.argv[1:]]))


def set_random_seed(seed=42):
    """Gives every library that is loaded the same seed."""
    import random

    random.seed(seed)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        numpy.random.seed(seed)
    if torch is not None:
        torch.manual_seed(seed)


def _has_gpu(is_amd):
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available() and (torch.version.hip is not None) == is_amd


def _requires(is_amd, what):
    def decorate(function):
        @functools.wraps(function)
        def run(*args, **keywords):
            if not _has_gpu(is_amd):
                import pytest

                pytest.skip(f"needs {what} and torch")
            return function(*args, **keywords)

        return run

    return decorate


def requires_cuda(function):
    """Decorates a test that is skipped where torch has no NVIDIA GPU."""
    return _requires(False, "an NVIDIA GPU")(function)


def requires_rocm(function):
    """Decorates a test that is skipped where torch has no AMD GPU."""
    return _requires(True, "an AMD GPU")(function)
