"""`import tilelang` as Tilewright."""

import importlib
import importlib.abc
import importlib.machinery
import sys


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `tilelang` and what is below it where Tilewright has it."""

    def find_spec(self, name, path=None, target=None):
        if name != "tilelang" and not name.startswith("tilelang."):
            return None
        ours = "tilewright" + name[len("tilelang") :]
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as e:
            if e.name != ours:
                raise
            raise ModuleNotFoundError(
                f"Tilewright has no module {ours!r} for {name!r}", name=name
            ) from None
        return importlib.machinery.ModuleSpec(name, self, is_package=hasattr(module, "__path__"))

    def create_module(self, spec):
        # The very same module, so that what it holds is the same too.
        return sys.modules["tilewright" + spec.name[len("tilelang") :]]

    def exec_module(self, module):
        pass


def as_tilelang():
    """From here on `import tilelang` means Tilewright in this process. Raises `ImportError` where
    another `tilelang` is imported already."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    loaded = sys.modules.get("tilelang")
    if loaded is not None and loaded.__name__ != "tilewright":
        raise ImportError("`tilelang` is imported already; call `as_tilelang()` before that")
    sys.meta_path.insert(0, _Finder())
