"""Operators behind an abstract class, with slots, class methods and a table of subclasses."""

import abc
from typing import ClassVar

import numpy as np
import tilelang
import tilelang.language as T


class Reduction(abc.ABC):
    __slots__ = ("shape", "_kernel")
    known: ClassVar[dict] = {}

    def __init_subclass__(cls, name, **keywords):
        super().__init_subclass__(**keywords)
        Reduction.known[name] = cls

    def __init__(self, shape):
        self.shape = shape
        self._kernel = tilelang.compile(self.build(*shape), out_idx=[1])

    @classmethod
    def of(cls, name, shape):
        return cls.known[name](shape)

    @abc.abstractmethod
    def reduce(self, tile, result):
        """Writes the reduction of the rows of a tile."""

    @staticmethod
    @abc.abstractmethod
    def expected(x): ...

    def build(self, M, N):
        @T.prim_func
        def kernel(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float32")):
            with T.Kernel(1, threads=32):
                tile = T.alloc_fragment((M, N), "float32")
                result = T.alloc_fragment((M,), "float32")
                T.copy(X, tile)
                self.reduce(tile, result)
                T.copy(result, Y)

        return kernel

    def __call__(self, x):
        return self._kernel(x)


class Sum(Reduction, name="sum"):
    def reduce(self, tile, result):
        T.reduce_sum(tile, result, dim=1)

    @staticmethod
    def expected(x):
        return x.sum(axis=1)


class Largest(Reduction, name="max"):
    def reduce(self, tile, result):
        T.reduce_max(tile, result, dim=1)

    @staticmethod
    def expected(x):
        return x.max(axis=1)


class Magnitude(Reduction, name="absmax"):
    def reduce(self, tile, result):
        T.reduce_absmax(tile, result, dim=1)

    @staticmethod
    def expected(x):
        return np.abs(x).max(axis=1)


x = np.random.default_rng(0).integers(-9, 10, (4, 32)).astype(np.float32)
for name, operator in sorted(Reduction.known.items()):
    np.testing.assert_array_equal(Reduction.of(name, x.shape)(x), operator.expected(x))
    print(name)
print("all close")
