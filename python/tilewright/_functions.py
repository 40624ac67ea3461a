"""Kernels and macros as Python functions."""

import functools
import sys

from . import _core, _source
from ._errors import plain


class Macro:
    """`@T.macro`: a function whose body becomes part of the kernels that call it."""

    def __init__(self, function):
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args, **keywords):
        message = f"the macro `{self.function.__name__}` was called outside a kernel"
        raise plain("staging", "outside-kernel", message, ("call it in a kernel",))

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return Macro(self.function.__get__(instance, owner))

    def __repr__(self):
        return f"<macro {self.function.__name__}>"


class PrimFunc:
    """`@T.prim_func`: a recorded kernel.

    `script()` is its tile IR. It is compiled by `tilewright.compile` or by the `jit` around it.
    """

    def __init__(self, function, frame=None):
        self.function = function
        functools.update_wrapper(self, function, updated=())
        annotations = _source.annotations(function, frame)
        self.core = _core.record_prim_func(function, annotations)

    @property
    def params(self):
        """The names of the parameters in their order."""
        return [name for name, *_ in self.core.params]

    def script(self):
        """The tile IR, as text."""
        return self.core.ir()

    def __call__(self, *args, **keywords):
        """Raises `TypeError`: what `tilewright.compile` makes of it is called."""
        raise TypeError(
            f"the kernel `{self.function.__name__}` is not compiled; "
            "call what `tilewright.compile` makes of it, or return it from a `jit` function"
        )

    def __repr__(self):
        return f"<kernel {self.function.__name__}>"


def prim_func(function=None, *, eager_jit=False):
    """Decorates a kernel: tensors as parameters, annotated with their shapes and dtypes.

    The body is recorded at once, with the names that it sees; gives a `PrimFunc`. Raises
    `KernelSyntaxError` or `StagingError`, located in the file, where it is no kernel. With
    `eager_jit=True` it is `jit`.
    """
    if eager_jit:
        from ._jit import jit

        return jit if function is None else jit(function)
    frame = sys._getframe(1)
    if function is None:
        return lambda function: PrimFunc(function, frame)
    return PrimFunc(function, frame)


def macro(function=None):
    """Decorates a function whose body becomes part of the kernels that call it; gives a `Macro`.
    Called outside a kernel that raises `StagingError`."""
    return macro if function is None else Macro(function)
