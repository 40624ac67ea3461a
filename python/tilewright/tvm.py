"""The two names of TVM that programs written for TileLang use."""

from . import _target
from ._values import dtype as DataType

__all__ = ["DataType", "target"]


class target:
    """A target by its name."""

    Target = staticmethod(_target.parse)
