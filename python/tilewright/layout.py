"""Layouts that kernels annotate their tiles with."""

from . import language as _language

for _name in dir(_language):
    if _name in ("Layout", "Fragment") or _name.startswith("make_"):
        globals()[_name] = getattr(_language, _name)

__all__ = [_n for _n in globals() if not _n.startswith("_")]
