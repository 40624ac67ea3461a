"""What a kernel is compiled for, and what runs it."""

import dataclasses
import re

from . import _core

_KINDS = {"cuda": "sm_90a", "hip": "gfx950", "rocm": "gfx950"}
# Where a target is asked for that is not listed, the listed one that such a machine runs.
_FAMILIES = (
    (re.compile(r"sm_(9\d|1\d\d)[af]?"), "sm_90a"),
    (re.compile(r"sm_8\d"), "sm_80"),
    (re.compile(r"gfx94\w+"), "gfx942"),
)


@dataclasses.dataclass(frozen=True)
class Target:
    """A machine by its name, and whether kernels run in the simulator of it."""

    name: "str | None" = None
    simulated: bool = False

    def __str__(self):
        name = self.name or "auto"
        return f"sim:{name}" if self.simulated else name


def parse(given):
    """The target that a user names: `auto`, `cuda`, `hip`, `sm_90a`, `sim:gfx950`, `cuda
    -arch=sm_90`, or an object or dict that says as much."""
    if isinstance(given, Target):
        return given
    if isinstance(given, dict):
        given = given.get("arch") or given.get("mcpu") or given.get("kind")
    text = "auto" if given is None else str(given).strip()
    if text.startswith("sim:"):
        return Target(_named(text[4:].strip(), text), simulated=True)
    if text in ("auto", "cpu", "llvm", "c", "reference"):
        return Target()
    kind, *options = text.split()
    for option in options:
        match = re.fullmatch(r"-{1,2}(?:arch|mcpu)=(\S+)", option)
        if match:
            return Target(_named(match[1], text))
    return Target(_named(kind, text))


def _named(name, text):
    if name in _core.targets():
        return name
    if name in _KINDS:
        return _KINDS[name]
    for pattern, known in _FAMILIES:
        if pattern.fullmatch(name):
            return known
    every = ", ".join(["auto", "cuda", "hip", *_core.targets()])
    raise ValueError(f"there is no target {text!r}; there are {every}, and sim:NAME of each name")
