"""Arguments of calls: arrays of numpy, tensors of torch, whatever speaks DLPack, and numbers."""

import numbers
import sys

from ._errors import plain
from ._values import dtype, dtype_name


# CUDA, ROCm, and CUDA's managed memory.
DLPACK_GPUS = (2, 10, 13)


def _torch():
    return sys.modules.get("torch")


def is_tensor(value):
    """Whether an argument is a tensor, of whichever library."""
    return (
        hasattr(value, "__dlpack__")
        or hasattr(value, "__cuda_array_interface__")
        or hasattr(value, "__array_interface__")
        and hasattr(value, "shape")
        and hasattr(value, "dtype")
        and not isinstance(value, numbers.Number)
        and not _is_numpy_scalar(value)
    )


def _is_numpy_scalar(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def is_torch(value):
    torch = _torch()
    return torch is not None and isinstance(value, torch.Tensor)


def on_gpu(value):
    """Whether a tensor lies in the memory of a GPU."""
    if is_torch(value):
        return value.is_cuda
    if hasattr(value, "__cuda_array_interface__"):
        return True
    device = getattr(value, "__dlpack_device__", None)
    return device is not None and int(device()[0]) in DLPACK_GPUS


def shape_of(value):
    return tuple(int(n) for n in value.shape)


def refuse(code, message, help=()):
    """A call that does not fit the kernel."""
    return plain("launch", code, message, help)


class HostTensor:
    """A tensor in this machine's memory, as the evaluators take it."""

    def __init__(self, name, value):
        import numpy

        self.name = name
        self.dtype = dtype_name(value.dtype)
        if is_torch(value):
            if value.device.type != "cpu":
                raise refuse("arg-device", f"`{name}` is on {value.device}, not on the CPU")
            self.array = _torch_array(value.detach())
        elif isinstance(value, numpy.ndarray):
            self.array = value
        else:
            self.array = numpy.from_dlpack(value)
            self.dtype = self.array.dtype.name
        size = self.array.itemsize
        if any(s < 0 or s % size for s, n in zip(self.array.strides, self.array.shape) if n > 1):
            raise refuse(
                "arg-strides",
                f"`{name}` has the strides {self.array.strides} in bytes",
                ("make a copy of it in order: `numpy.ascontiguousarray`",),
            )
        self.strides = [max(s, 0) // size for s in self.array.strides]

    def flat(self):
        """The memory from the first element to the last."""
        import numpy

        array = self.array
        if array.size == 0:
            return numpy.empty(0, array.dtype)
        span = 1 + sum((n - 1) * s for n, s in zip(array.shape, self.strides))
        size = (array.itemsize,)
        return numpy.lib.stride_tricks.as_strided(array, (span,), size)

    def argument(self):
        return (self.dtype, list(self.array.shape), self.strides, self.flat().tobytes())

    def store(self, data):
        """Takes over what a kernel left."""
        import numpy

        if not self.array.flags.writeable:
            raise refuse("arg-read-only", f"the kernel writes `{self.name}`, which is read-only")
        flat = self.flat()
        flat[:] = numpy.frombuffer(data, flat.dtype)


def _torch_array(tensor):
    """A view of a tensor's memory; types that numpy lacks are seen as integers."""
    torch = _torch()
    try:
        return tensor.numpy()
    except TypeError:
        same = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        return tensor.view(same[tensor.element_size()]).numpy()


def make_output(kind, name, shape, strides, data, as_torch):
    """A new tensor of what a kernel left."""
    data = bytearray(data)
    kind = dtype(kind)
    if as_torch:
        torch = _torch()
        wanted = kind.as_torch()
        if not data:
            return torch.empty(shape, dtype=wanted)
        flat = torch.frombuffer(data, dtype=torch.uint8).view(wanted)
        return torch.as_strided(flat, shape, strides)
    import numpy

    flat = numpy.frombuffer(data, kind.as_numpy())
    size = kind.itemsize
    return numpy.lib.stride_tricks.as_strided(flat, shape, [s * size for s in strides])


def number(name, value):
    """A scalar argument."""
    if isinstance(value, (bool, int, float)):
        return value
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "shape", None) in ((), None):
        return item()
    for method in ("__index__", "__float__"):
        if hasattr(value, method):
            return getattr(value, method)()
    raise refuse("arg-kind", f"`{name}` is a scalar, not a {type(value).__name__}")
