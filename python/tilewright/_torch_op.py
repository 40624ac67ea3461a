"""Kernels under `torch.compile`: calls are an operator of torch, whose fake implementation says what
tensors they make, so that graphs are traced through them and nothing is broken."""

import itertools
import sys
import weakref

_KERNELS = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()


def _never():
    return False


# Whether the caller is being traced; torch's own answer once torch is there.
is_compiling = _never


def register(kernel):
    """Gives a kernel the number by which graphs name it."""
    number = next(_NUMBERS)
    _KERNELS[number] = kernel
    if is_compiling is _never and "torch" in sys.modules:
        _define(sys.modules["torch"])
    return number


def _define(torch):
    global is_compiling
    if not hasattr(torch, "library") or not hasattr(torch.library, "custom_op"):
        return
    numbers = "SymInt[] whole, float[] real"
    # One that makes tensors, and one that writes those it is given; torch has none that does both.
    make = torch.library.custom_op(
        "tilewright::make", _make, mutates_args=(),
        schema=f"(int kernel, Tensor?[] tensors, {numbers}) -> Tensor[]",
    )
    make.register_fake(_fake)
    write = torch.library.custom_op(
        "tilewright::write", _write, mutates_args=("written",),
        schema=f"(int kernel, Tensor?[] read, Tensor(a!)[] written, {numbers}) -> ()",
    )
    write.register_fake(_nothing)
    is_compiling = torch.compiler.is_compiling


def call(kernel, args):
    """A call that is being traced."""
    import torch

    tensors, read, written, whole, real = [], [], [], [], []
    for (_, kind, _, shape), writes, value in zip(kernel._given, kernel._writes, args):
        if shape is None and "float" in kind:
            real.append(float(value))
        elif shape is None:
            whole.append(value)
        else:
            tensors.append(value)
            (written if writes else read).append(value)
    if len(kernel._given) == len(kernel._params):
        torch.ops.tilewright.write(kernel._number, read, written, whole, real)
        return None
    made = torch.ops.tilewright.make(kernel._number, tensors, whole, real)
    # Tensors that are written come back as new ones, behind the outputs.
    count = len(kernel._params) - len(kernel._given)
    for tensor, left in zip(written, made[count:]):
        tensor.copy_(left)
    return made[0] if count == 1 else list(made[:count])


def _known(number):
    kernel = _KERNELS.get(number)
    if kernel is None:
        raise RuntimeError("the kernel of this compiled graph is gone; keep what made it")
    return kernel


def _arguments(kernel, tensors, whole, real):
    tensors, whole, real = iter(tensors), iter(whole), iter(real)
    for _, kind, _, shape in kernel._given:
        if shape is None:
            yield next(real) if "float" in kind else next(whole)
        else:
            yield next(tensors)


def _is_written(kernel):
    """Whether each tensor of a call is written."""
    return [w for (*_, shape), w in zip(kernel._given, kernel._writes) if shape is not None]


def _write(kernel, read, written, whole, real):
    kernel = _known(kernel)
    read, written = iter(read), iter(written)
    tensors = [next(written) if writes else next(read) for writes in _is_written(kernel)]
    kernel(*_arguments(kernel, tensors, whole, real))


def _make(kernel, tensors, whole, real):
    kernel = _known(kernel)
    writes = _is_written(kernel)
    tensors = [t.clone() if w and t is not None else t for t, w in zip(tensors, writes)]
    made = kernel(*_arguments(kernel, tensors, whole, real))
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    return made + [t for t, w in zip(tensors, writes) if w and t is not None]


def _nothing(kernel, read, written, whole, real):
    return None


def _fake(kernel, tensors, whole, real):
    import torch

    from ._values import dtype

    kernel = _known(kernel)
    sizes, device = {}, None
    args = list(_arguments(kernel, tensors, whole, real))
    for (name, _, _, shape), value in zip(kernel._given, args):
        if shape is None:
            sizes.setdefault(name, value)
        elif value is not None:
            device = device or value.device
            sizes.update((size, n) for size, n in zip(shape, value.shape) if size.isidentifier())
    made = []
    for name, kind, output, shape in kernel._params:
        if output:
            extents = [int(n) if n.isdigit() else sizes.get(n) for n in shape]
            if None in extents:
                raise RuntimeError(
                    f"the size of `{name}` is computed in the kernel, and unknown while tracing"
                )
            made.append(torch.empty(extents, dtype=dtype(kind).as_torch(), device=device))
    writes = _is_written(kernel)
    return made + [torch.empty_like(t) for t, w in zip(tensors, writes) if w and t is not None]
