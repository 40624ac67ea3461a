"""Values of the language in Python's hands: dtypes, and what is kept to be said in a kernel."""

import sys

from . import _core
from ._errors import plain


class dtype(str):
    """A data type: its name as a string, with the `bits` of a lane and the number of `lanes`.

    Made of a name, or of a dtype of torch, numpy or Python; equal to all of them. Called with a
    value it converts: `T.float32(x)`. Raises `ValueError` for what names no dtype.
    """

    __slots__ = ("bits", "lanes")

    def __new__(cls, name):
        facts = _core.dtype_facts(dtype_name(name))
        if facts is None:
            raise ValueError(f"{name!r} is not the name of a dtype")
        self = super().__new__(cls, facts[0])
        self.bits, self.lanes = facts[1], facts[2]
        return self

    @property
    def itemsize(self):
        """The bytes of an element, those of all lanes together."""
        return (self.bits * self.lanes + 7) // 8

    bytes = itemsize

    def as_torch(self):
        """The same type of torch. Raises `TypeError` where torch has none."""
        import torch

        found = getattr(torch, _TORCH_NAMES.get(str(self), str(self)), None)
        if not isinstance(found, torch.dtype):
            raise TypeError(f"torch has no dtype `{self}`")
        return found

    def as_numpy(self):
        """The same type of numpy; those that only `ml_dtypes` has need that package. Raises
        `TypeError` where there is none."""
        import numpy

        name = str(self)
        try:
            return numpy.dtype(name)
        except TypeError:
            pass
        try:
            import ml_dtypes

            return numpy.dtype(getattr(ml_dtypes, name))
        except (ImportError, AttributeError):
            raise TypeError(
                f"numpy has no dtype `{name}`; install the package `ml_dtypes`, or use torch"
            ) from None

    def __call__(self, *args):
        """The value, converted to this type in the kernel that uses it; without one the type."""
        if not args:
            return self
        return Deferred("call", (self, args, {}))

    def __eq__(self, other):
        if isinstance(other, str):
            if str.__eq__(self, other):
                return True
            facts = _core.dtype_facts(other)
            return facts is not None and str.__eq__(self, facts[0])
        name = dtype_name(other, None)
        return name is not None and self == name

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self):
        return str(self)

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __reduce__(self):
        return dtype, (str(self),)


_TORCH_NAMES = {}
_PYTHON_TYPES = {int: "int32", float: "float32", bool: "bool"}


def dtype_name(value, default=""):
    """The name of what stands for a dtype: ours, a string, torch's, numpy's, Python's."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, type) and value in _PYTHON_TYPES:
        return _PYTHON_TYPES[value]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "dtype", ())):
        return str(value).removeprefix("torch.")
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.dtype):
            return value.name
        if isinstance(value, type) and issubclass(value, numpy.generic):
            return numpy.dtype(value).name
    return default


class Deferred:
    """What the language was told outside a kernel, kept to be said inside one.

    `T.dynamic("m")`, `T.Tensor((M, N), dtype)`, `T.ceildiv(m, 64)` and arithmetic on such values
    are known only to the kernel that uses them.
    """

    __slots__ = ("_kind", "_parts")

    def __init__(self, kind, parts):
        self._kind = kind
        self._parts = parts

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self._kind == "call" and str(self._parts[0]) in _TENSORS:
            known = _tensor_attribute(self, name)
            if known is not None:
                return known
        return Deferred("op", ("getattr", (self, name)))

    def __getitem__(self, key):
        return Deferred("op", ("getitem", (self, key)))

    def __iter__(self):
        raise TypeError("a value that only a kernel knows cannot be gone through in Python")

    def __bool__(self):
        raise TypeError(
            "a value that only a kernel knows has no truth in Python; "
            "compare it inside the kernel"
        )

    def __repr__(self):
        if self._kind == "call":
            args = [repr(a) for a in self._parts[1]]
            args += [f"{k}={v!r}" for k, v in self._parts[2].items()]
            return f"{self._parts[0]}({', '.join(args)})"
        if self._kind == "name":
            return f"T.{self._parts[0]}"
        if self._kind == "op":
            return f"{self._parts[0]}({', '.join(repr(a) for a in self._parts[1])})"
        return "<a value of a kernel>"

    def __or__(self, other):
        # `T.Tensor(...) | None` in an annotation.
        if other is None or isinstance(other, type):
            return self
        return Deferred("op", ("or_", (self, other)))

    __hash__ = object.__hash__


def _operator(name, reflected=False):
    def method(self, *others):
        operands = (*others, self) if reflected else (self, *others)
        return Deferred("op", (name, operands))

    return method


for _name in ("add sub mul matmul truediv floordiv mod pow lshift rshift xor").split():
    setattr(Deferred, f"__{_name}__", _operator(_name))
    setattr(Deferred, f"__r{_name}__", _operator(_name, True))
Deferred.__and__ = _operator("and_")
Deferred.__rand__ = _operator("and_", True)
Deferred.__ror__ = lambda self, other: self if other is None else Deferred("op", ("or_", (other, self)))
for _name in ("neg pos invert eq ne lt le gt ge").split():
    setattr(Deferred, f"__{_name}__", _operator(_name))

_TENSORS = ("T.Tensor", "T.Buffer", "T.StridedTensor")


def _tensor_attribute(tensor, name):
    args, keywords = tensor._parts[1], tensor._parts[2]
    if name == "shape":
        shape = args[0] if args else keywords.get("shape")
        return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if name == "dtype":
        given = keywords.get("dtype", args[-1] if len(args) > 1 else "float32")
        return dtype(given)
    return None


class LanguageFunction:
    """A function of the language, `T.name`.

    In a kernel it records what the kernel does. Outside one, those that only compute a value may
    be called too.
    """

    def __init__(self, name, params, is_value, subscript, section):
        self.name = name
        self.params = params
        self._is_value = is_value
        self._subscript = subscript
        self.section = section
        self.__doc__ = (
            f"T.{name}{_signature(params)}\n\n"
            f"Its family is section {section} of the language's specification; rarer names are in 14.1."
        )

    @property
    def __name__(self):
        return self.name

    def __call__(self, *args, **keywords):
        if not self._is_value:
            raise plain(
                "staging",
                "outside-kernel",
                f"`T.{self.name}` was called outside a kernel",
                ("call it in the body of a kernel, a macro, or a function that a kernel calls",),
            )
        if self.name in ("dynamic", "symbolic") and args and isinstance(args[0], str):
            names = args[0].replace(",", " ").split()
            if len(names) > 1:
                return tuple(self(name, *args[1:], **keywords) for name in names)
        if not any(map(_is_kept, args)) and not any(map(_is_kept, keywords.values())):
            value = _core.evaluate(self.name, args, keywords)
            if value is not None:
                return value
        return Deferred("call", (self, args, keywords))

    def __getitem__(self, items):
        if not self._subscript:
            return self
        return self(*(items if isinstance(items, tuple) else (items,)))

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __repr__(self):
        return f"T.{self.name}"

    def __reduce__(self):
        return _function, (self.name,)


def _function(name):
    from . import language

    return getattr(language, name)


def _is_kept(value):
    if isinstance(value, (tuple, list)):
        return any(map(_is_kept, value))
    return isinstance(value, Deferred)


def _signature(params):
    parts = []
    star = False
    for name, how, _ in params:
        if how == "keyword" and not star:
            parts.append("*")
            star = True
        if how == "rest":
            star = True
        parts.append(
            {
                "required": name,
                "optional": f"{name}=None",
                "keyword": f"{name}=None",
                "rest": f"*{name}",
                "keywords": f"**{name}",
            }[how]
        )
    return f"({', '.join(parts)})"
