"""`python -m tilewright._stubs`: the type stub of `tilewright.language`, from the compiler's table.

The file that it prints is part of the package; a test compares.
"""

from . import _core

_HEAD = '''"""The tile language. Made by `python -m tilewright._stubs` from the compiler's table of names."""

from typing import Any, Callable, Mapping, Sequence, TypeVar

from .._functions import Macro as Macro, PrimFunc as PrimFunc
from .._values import Deferred as Deferred, dtype as dtype

_F = TypeVar("_F", bound=Callable[..., Any])
_Shape = Any
_DType = Any
_Scalar = Any
_Buffer = Any
_Tile = Any

def prim_func(function: Callable[..., Any] = ..., *, eager_jit: bool = ...) -> Any: ...
def macro(function: _F = ...) -> _F: ...

inline = macro
TensorLike = Any
'''

_TYPES = {
    "any": "Any",
    "int": "int",
    "bool": "bool",
    "number": "float",
    "str": "str",
    "dtype": "_DType",
    "shape": "_Shape",
    "scalar": "_Scalar",
    "buffer": "_Buffer",
    "tile": "_Tile",
    "callable": "Callable[..., Any]",
    "dict": "Mapping[Any, Any]",
    "sequence": "Sequence[Any]",
}

# Names that stand in the head, or that annotations need as types.
_OWN = ("dtype", "prim_func", "macro", "PrimFunc")


def _parameters(params):
    parts, star = [], False
    for name, how, kind in params:
        kind = _TYPES[kind]
        if how == "keyword" and not star:
            parts.append("*")
        star = star or how in ("keyword", "rest")
        parts.append(
            {
                "required": f"{name}: {kind}",
                "optional": f"{name}: {kind} | None = ...",
                "keyword": f"{name}: {kind} | None = ...",
                "rest": f"*{name}: {kind}",
                "keywords": f"**{name}: {kind}",
            }[how]
        )
    return ", ".join(parts)


def text():
    """The stub."""
    lines = [_HEAD]
    lines += [f"{name}: dtype" for name in sorted(_core.dtype_names())]
    lines.append("")
    lines += [f"{name}: Any" for name in sorted(_core.constant_names()) if name not in _OWN]
    lines.append("")
    for name, params, _, subscript, _ in sorted(_core.functions()):
        if name in _OWN or not name.isidentifier():
            continue
        if subscript:
            # Called or subscripted, in code and in annotations.
            lines.append(f"{name}: Any")
        else:
            lines.append(f"def {name}({_parameters(params)}) -> Any: ...")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(text(), end="")
