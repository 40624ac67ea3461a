"""What is known of the GPU of this machine."""

from . import driver

__all__ = ["driver"]
