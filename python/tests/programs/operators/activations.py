"""Functions of one value, for the end of a product."""

import tilelang.language as T


def relu(x):
    return T.max(x, 0)


def leaky(x, slope=0.125):
    return T.if_then_else(x > 0, x, x * slope)


@T.macro
def apply(tile, rows, columns, function):
    for i, j in T.Parallel(rows, columns):
        tile[i, j] = function(tile[i, j])


ACTIVATIONS = {"relu": relu, "leaky": leaky, "none": lambda x: x}
