"""Code that several kernels share: macros, plain functions, constants."""

import tilelang.language as T

SCALE = 0.5


@T.macro
def load_row(src, dst, row, columns):
    for j in T.Parallel(columns):
        dst[j] = src[row, j]


@T.macro
def scale(buffer, factor=SCALE):
    for j in T.Parallel(buffer.shape[0]):
        buffer[j] = buffer[j] * factor


def polynomial(x, coefficients):
    """Horner's rule, on numbers of Python and of the kernel."""
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


def gelu_constants():
    import math

    return math.sqrt(2 / math.pi), 0.044715


def barrier_between():
    T.sync_threads()
