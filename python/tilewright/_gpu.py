"""Calls with tensors of a GPU: of torch, or of whatever has `__cuda_array_interface__` or speaks
DLPack."""

import glob
import os
import sys

from . import _core, _tensors
from ._values import dtype, dtype_name


_ROCM = 10


def describe(name, value, held=None):
    """A tensor as (dtype, shape, element strides, address), and the device it is on. What must live
    until the launch is put into `held`."""
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
    if interface is None and _tensors.on_gpu(value):
        kind, ordinal = (int(n) for n in value.__dlpack_device__())
        # The kernel runs on the default stream, which has a number of its own with CUDA.
        capsule = value.__dlpack__(stream=0 if kind == _ROCM else 1)
        if held is not None:
            held.append(capsule)
        dtype_, shape, strides, address = _core.dlpack_facts(capsule)
        return (dtype_, shape, strides, address), ordinal
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
    given, first, ordinal, held = [], None, None, []
    for (name, _, _, shape), value in zip(kernel._given, values):
        if shape is None and not _tensors.is_tensor(value):
            given.append((name, _tensors.number(name, value)))
            continue
        if value is None:
            given.append((name, _null(kernel, name)))
            continue
        if not _tensors.is_tensor(value):
            raise _tensors.refuse("arg-kind", f"`{name}` is a tensor, not a {type(value).__name__}")
        facts, device = describe(name, value, held)
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
    is_amd, stream, empty, scratch = _library(first, ordinal)
    outputs = [p for p in kernel._params if p[2]]
    made = {}
    if outputs:
        shapes = {name: rest for name, *rest in kernel.core.shapes(given)}
        for name, kind, _, _ in outputs:
            made[name] = empty(shapes[name][0], shapes[name][1], dtype(kind))
            given.append((name, describe(name, made[name])[0]))
    kernel.core.launch(kernel.target.name, (is_amd, ordinal, stream), given, scratch)
    held.clear()
    return kernel._returned(made)


def _null(kernel, name):
    """What is said of a tensor that is not given: a null pointer of the size that the kernel states."""
    try:
        dtype_, shape = kernel.core.null_facts(name)
    except ValueError as error:
        raise _tensors.refuse("arg-kind", str(error)) from None
    strides, step = [], 1
    for n in reversed(shape):
        strides.insert(0, step)
        step *= n
    return (dtype_, shape, strides, 0)


def _library(tensor, ordinal):
    """Whether the GPU is AMD's, the current stream, how outputs are made, and how memory for
    workspaces: bytes to what holds them and their address, `None` where the library gives none."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        stream = torch.cuda.current_stream(tensor.device).cuda_stream

        def empty(shape, strides, kind):
            return torch.empty_strided(shape, strides, dtype=kind.as_torch(), device=tensor.device)

        def scratch(bytes):
            made = torch.empty_strided((bytes,), (1,), dtype=torch.uint8, device=tensor.device)
            return made, made.data_ptr()

        return torch.version.hip is not None, stream, empty, scratch
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(tensor, cupy.ndarray):

        def empty(shape, strides, kind):
            return cupy.empty(shape, kind.as_numpy())

        def scratch(bytes):
            made = cupy.empty((bytes,), "uint8")
            return made, made.data.ptr

        return bool(cupy.cuda.runtime.is_hip), cupy.cuda.get_current_stream().ptr, empty, scratch

    def refuse(shape, strides, kind):
        raise _tensors.refuse(
            "arg-kind",
            f"outputs cannot be made as a {type(tensor).__name__}",
            ("call the kernel with tensors of torch or arrays of cupy",),
        )

    interface = getattr(tensor, "__cuda_array_interface__", None)
    if interface is None:
        return int(tensor.__dlpack_device__()[0]) == _ROCM, 0, refuse, None
    return False, interface.get("stream") or 0, refuse, None


def _find_nvrtc():
    """Names the NVRTC of this Python's packages, where nothing else does."""
    if "TILEWRIGHT_NVRTC" in os.environ:
        return
    for folder in sys.path:
        for found in sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libnvrtc.so.*"))):
            if "builtins" not in found and "alt" not in found:
                os.environ["TILEWRIGHT_NVRTC"] = found
                return
