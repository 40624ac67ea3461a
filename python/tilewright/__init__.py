"""Tilewright: a compiler for GPU tile kernels.

    import tilewright
    import tilewright.language as T

    @tilewright.jit(out_idx=[-1])
    def add(N):
        @T.prim_func
        def kernel(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"),
                   C: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
                for i in T.Parallel(128):
                    C[bx * 128 + i] = A[bx * 128 + i] + B[bx * 128 + i]
        return kernel

    add(1024)(a, b)     # numpy arrays, tensors of torch
"""

from . import _core
from . import language, layout, math, profiler
from ._alias import as_tilelang
from ._autotune import autotune
from ._errors import (
    KernelError,
    KernelSyntaxError,
    LaunchError,
    LaunchTypeError,
    LoweringError,
    StagingError,
    StagingTypeError,
    TilewrightError,
    TilewrightWarning,
    ToolchainError,
)
from ._functions import PrimFunc, macro, prim_func
from ._jit import JITFunction, JITKernel, compile, jit, lazy_jit, par_compile
from ._pass_configs import PassConfigKey
from .math import cdiv, next_power_of_2
from .profiler import Profiler, TensorSupplyType

__version__ = _core.version


def set_log_level(level):
    """Accepted for programs that call it. The compiler logs nothing; what it has to tell are Python's
    warnings, of the class `TilewrightWarning`."""


def disable_cache():
    """Accepted for programs that call it, and changes nothing: kernels are kept by all that they are
    made from. An empty
    `TILEWRIGHT_CACHE_DIR` in the environment turns the cache on disk off."""


def enable_cache():
    """The counterpart of `disable_cache`; it changes nothing either."""
