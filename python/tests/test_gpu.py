"""What of a call on a GPU needs no GPU: how tensors are described, and what is refused."""

import numpy as np
import pytest
import tilewright
import tilewright.language as T
from tilewright import _gpu


class Array:
    """An array that says it is on a GPU."""

    def __init__(self, array, strides=None):
        self.shape, self.dtype = array.shape, array.dtype
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (1 << 20, False),
            "strides": strides,
            "version": 3,
        }


def kernel():
    n = T.dynamic("n")

    @T.prim_func
    def double(A: T.Tensor((n, 4), "float32"), B: T.Tensor((4, n), "float32"), k: T.int32):
        with T.Kernel(n, threads=4) as row:
            for i in T.Parallel(4):
                B[i, row] = A[row, i] * k

    return tilewright.compile(double, out_idx=[1])


def test_descriptions():
    array = np.zeros((2, 3), np.float16)
    assert _gpu.describe("A", Array(array)) == (("float16", [2, 3], [3, 1], 1 << 20), 0)
    facts, _ = _gpu.describe("A", Array(array, (16, 2)))
    assert facts[2] == [8, 1]


def test_shapes_of_outputs():
    facts, _ = _gpu.describe("A", Array(np.zeros((3, 4), np.float32)))
    found = kernel().core.shapes([("A", facts), ("k", 2)])
    assert found == [("A", [3, 4], [4, 1]), ("B", [4, 3], [3, 1])]
    with pytest.raises(tilewright.LaunchError) as caught:
        kernel().core.shapes([("A", facts)])
    assert caught.value.code == "arg-missing"


def test_arrays_beside_each_other():
    mixed = tilewright.compile(kernel().prim_func)
    on_gpu, here = Array(np.zeros((3, 4), np.float32)), np.zeros((4, 3), np.float32)
    with pytest.raises(tilewright.LaunchError) as caught:
        mixed(on_gpu, here, 2)
    assert caught.value.code == "arg-device" and "`B`" in str(caught.value)


def test_outputs_of_unknown_libraries():
    with pytest.raises(tilewright.LaunchError, match="torch or arrays of cupy"):
        kernel()(Array(np.zeros((3, 4), np.float32)), 2)


def test_a_machine_without_a_gpu_says_so():
    mixed = tilewright.compile(kernel().prim_func, target="sm_90a")
    arrays = Array(np.zeros((3, 4), np.float32)), Array(np.zeros((4, 3), np.float32))
    with pytest.raises(tilewright.TilewrightError) as caught:
        mixed(*arrays, 2)
    assert isinstance(caught.value, RuntimeError)
