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
    schema = (
        "(int kernel, Tensor?[] read, Tensor(a!)[] written, SymInt[] whole, float[] real) -> Tensor[]"
    )
    operator = torch.library.custom_op(
        "tilewright::call", _run, mutates_args=("written",), schema=schema
    )
    operator.register_fake(_fake)
    is_compiling = torch.compiler.is_compiling


def call(kernel, args):
    """A call that is being traced."""
    import torch

    read, written, whole, real = [], [], [], []
    for (_, kind, _, shape), writes, value in zip(kernel._given, kernel._writes, args):
        if shape is None and "float" in kind:
            real.append(float(value))
        elif shape is None:
            whole.append(value)
        elif writes:
            written.append(value)
        else:
            read.append(value)
    made = torch.ops.tilewright.call(kernel._number, read, written, whole, real)
    if len(made) == 0:
        return None
    return made[0] if len(made) == 1 else list(made)


def _known(number):
    kernel = _KERNELS.get(number)
    if kernel is None:
        raise RuntimeError("the kernel of this compiled graph is gone; keep what made it")
    return kernel


def _arguments(kernel, read, written, whole, real):
    read, written, whole, real = iter(read), iter(written), iter(whole), iter(real)
    for (_, kind, _, shape), writes in zip(kernel._given, kernel._writes):
        if shape is None:
            yield next(real) if "float" in kind else next(whole)
        else:
            yield next(written) if writes else next(read)


def _run(kernel, read, written, whole, real):
    kernel = _known(kernel)
    made = kernel(*_arguments(kernel, read, written, whole, real))
    if made is None:
        return []
    return list(made) if isinstance(made, (list, tuple)) else [made]


def _fake(kernel, read, written, whole, real):
    import torch

    from ._values import dtype

    kernel = _known(kernel)
    sizes, device = {}, None
    args = list(_arguments(kernel, read, written, whole, real))
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
    return made
