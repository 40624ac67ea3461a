"""A package of kernels, as projects have them."""

from .activations import ACTIVATIONS
from .linear import Linear

__all__ = ["ACTIVATIONS", "Linear"]
