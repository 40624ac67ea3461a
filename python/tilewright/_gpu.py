"""Calls with tensors of a GPU: of torch, or of whatever has `__cuda_array_interface__`."""

import glob
import os
import sys

from . import _tensors
from ._values import dtype, dtype_name


def describe(name, value):
    """A tensor as (dtype, shape, element strides, address), and the device it is on."""
    if _tensors.is_torch(value):
        if not value.is_cuda:
            raise _tensors.refuse(
                "arg-device",
                f"`{name}` is on {value.device}, and other tensors of the call are on a GPU",
                ("move it: `.cuda()`",),
            )
        facts = dtype_name(value.dtype), list(value.shape), list(value.stride()), value.data_ptr()
        return facts, value.device.index
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        raise _tensors.refuse(
            "arg-device", f"`{name}` is a {type(value).__name__}, not a tensor of the GPU"
        )
    import numpy

    kind = numpy.dtype(interface["typestr"])
    shape = [int(n) for n in interface["shape"]]
    strides = interface.get("strides")
    if strides is None:
        strides, step = [], 1
        for n in reversed(shape):
            strides.insert(0, step)
            step *= n
    else:
        strides = [s // kind.itemsize for s in strides]
    device = getattr(value, "device", None)
    ordinal = getattr(device, "id", 0) if device is not None else 0
    return (kind.name, shape, strides, int(interface["data"][0])), int(ordinal)


def call(kernel, values):
    """Queues the kernel on the current stream of the tensors' device, and returns its outputs."""
    _find_nvrtc()
    given, first, ordinal = [], None, None
    for (name, _, _, shape), value in zip(kernel._given, values):
        if shape is None and not _tensors.is_tensor(value):
            given.append((name, _tensors.number(name, value)))
            continue
        if not _tensors.is_tensor(value):
            raise _tensors.refuse("arg-kind", f"`{name}` is a tensor, not a {type(value).__name__}")
        facts, device = describe(name, value)
        if any(s < 0 for s in facts[2]):
            raise _tensors.refuse("arg-strides", f"`{name}` has the strides {tuple(facts[2])}")
        if ordinal is None:
            first, ordinal = value, device
        elif device != ordinal:
            raise _tensors.refuse(
                "arg-device",
                f"`{name}` is on GPU {device}, and other tensors of the call are on GPU {ordinal}",
            )
        given.append((name, facts))
    is_amd, stream, empty = _library(first, ordinal)
    outputs = [p for p in kernel._params if p[2]]
    made = {}
    if outputs:
        shapes = {name: rest for name, *rest in kernel.core.shapes(given)}
        for name, kind, _, _ in outputs:
            made[name] = empty(shapes[name][0], shapes[name][1], dtype(kind))
            given.append((name, describe(name, made[name])[0]))
    kernel.core.launch(kernel.target.name, is_amd, ordinal, stream, given)
    return kernel._returned(made)


def _library(tensor, ordinal):
    """Whether the GPU is AMD's, the current stream, and how outputs are made."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        stream = torch.cuda.current_stream(tensor.device).cuda_stream

        def empty(shape, strides, kind):
            return torch.empty_strided(shape, strides, dtype=kind.as_torch(), device=tensor.device)

        return torch.version.hip is not None, stream, empty
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(tensor, cupy.ndarray):

        def empty(shape, strides, kind):
            return cupy.empty(shape, kind.as_numpy())

        return bool(cupy.cuda.runtime.is_hip), cupy.cuda.get_current_stream().ptr, empty

    def refuse(shape, strides, kind):
        raise _tensors.refuse(
            "arg-kind",
            f"outputs cannot be made as a {type(tensor).__name__}",
            ("call the kernel with tensors of torch or arrays of cupy",),
        )

    return False, tensor.__cuda_array_interface__.get("stream") or 0, refuse


def _find_nvrtc():
    """Names the NVRTC of this Python's packages, where nothing else does."""
    if "TILEWRIGHT_NVRTC" in os.environ:
        return
    for folder in sys.path:
        for found in sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libnvrtc.so.*"))):
            if "builtins" not in found and "alt" not in found:
                os.environ["TILEWRIGHT_NVRTC"] = found
                return
