"""Numbers that kernels are sized by."""


def cdiv(a, b):
    """`a / b`, rounded up. Raises `ZeroDivisionError` where `b` is zero."""
    return -(a // -b)


def next_power_of_2(n):
    """The least power of two that is not below `n`."""
    return 1 << max(n - 1, 0).bit_length()
