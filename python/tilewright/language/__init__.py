"""The tile language: `import tilewright.language as T`.

Its functions have their meaning in kernels, which the compiler reads; outside one, those that only
compute a value (`T.ceildiv`, `T.dynamic`, `T.Tensor`) may be called too.
"""

from .. import _core
from .._functions import Macro, PrimFunc, macro, prim_func
from .._values import Deferred, LanguageFunction, dtype

inline = macro


def _fill(names):
    for name in _core.constant_names():
        names[name] = Deferred("name", (name,))
    for name in _core.dtype_names():
        names[name] = dtype(name)
    for row in _core.functions():
        names[row[0]] = LanguageFunction(*row)


_own = {"PrimFunc": PrimFunc, "dtype": dtype, "prim_func": prim_func, "macro": macro}
_fill(globals())
globals().update(_own)

# Types that appear in annotations.
PrimExpr = Deferred
TensorLike = Tensor  # noqa: F821


def __getattr__(name):
    if name in ("jit", "autotune"):
        import tilewright

        return getattr(tilewright, name)
    facts = None if name.startswith("_") else _core.dtype_facts(name)
    if facts is not None:
        return dtype(name)
    raise AttributeError(f"the tile language has no `T.{name}`")


__all__ = sorted(n for n in globals() if not n.startswith("_") or n.startswith("__exp"))
