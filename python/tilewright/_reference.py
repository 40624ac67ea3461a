"""`python -m tilewright._reference`: the page `docs/python-api.md`, from the package's docstrings.

A test compares the page with what is made here, and finds public names without a docstring.
"""

import enum
import importlib
import inspect
import re

from . import _core
from ._values import LanguageFunction

_HEAD = """# The Python package, name by name

Made by `python -m tilewright._reference` from the docstrings. [python.md](python.md) shows how the package is used, and [language.md](language.md) says what the functions of the language mean."""

# Sections: a heading, a module, and its names.
_SECTIONS = [
    ("Kernels", "tilewright", "jit lazy_jit compile par_compile prim_func macro JITFunction JITKernel PrimFunc PassConfigKey"),
    ("Tuning", "tilewright", "autotune"),
    ("Tuning", "tilewright._autotune", "TunedFunction Tuning"),
    ("Timing and checking", "tilewright", "Profiler TensorSupplyType"),
    ("Timing and checking", "tilewright.profiler", "do_bench"),
    ("Tests of kernels", "tilewright.testing", "main set_random_seed requires_cuda requires_rocm"),
    ("Numbers and types", "tilewright", "cdiv next_power_of_2"),
    ("Numbers and types", "tilewright.language", "dtype"),
    ("Facts of the GPU", "tilewright.carver.arch.driver", "get_num_sms get_cuda_device_properties"),
    ("The process", "tilewright", "as_tilelang set_log_level enable_cache disable_cache"),
    (
        "Errors",
        "tilewright",
        "TilewrightError KernelSyntaxError StagingError StagingTypeError LoweringError "
        "ToolchainError LaunchError LaunchTypeError KernelError TilewrightWarning",
    ),
]

# Methods that say something although their names begin with an underscore.
_CALLS = ("__call__",)


class Undocumented(LookupError):
    """A public name has no docstring, or is on no section of the page."""


def _doc(owner, name, value):
    # Not what a base class says of itself.
    found = vars(value).get("__doc__") if inspect.isclass(value) else getattr(value, "__doc__", None)
    if not found:
        raise Undocumented(f"`{owner}.{name}` has no docstring")
    return inspect.cleandoc(found)


def _signature(function, bound=False):
    parts, star = [], False
    for at, param in enumerate(inspect.signature(function).parameters.values()):
        if bound and at == 0:
            continue
        if param.kind is param.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or param.kind in (param.KEYWORD_ONLY, param.VAR_POSITIONAL)
        prefix = {param.VAR_POSITIONAL: "*", param.VAR_KEYWORD: "**"}.get(param.kind, "")
        default = param.default
        given = "" if default is param.empty else f"={default if isinstance(default, enum.Enum) else repr(default)}"
        parts.append(f"{prefix}{param.name}{given}")
    return f"({', '.join(parts)})"


def _members(cls):
    """The public methods and properties that a class defines itself, in its order."""
    for name, value in vars(cls).items():
        if name.startswith("_") and name not in _CALLS:
            continue
        if isinstance(value, property) or inspect.isfunction(value):
            yield name, value


def _entry(module, name, value):
    # What is no name of a public module is met as a value only.
    path = name if module.startswith("tilewright._") else f"{module}.{name}"
    lines = []
    if not inspect.isclass(value):
        lines += [f"### `{path}{_signature(value)}`", "", _doc(module, name, value), ""]
        return lines
    bases = [b.__name__ for b in value.__bases__ if b is not object]
    lines += [f"### class `{path}`" + (f" ({', '.join(bases)})" if bases else ""), ""]
    lines += [_doc(module, name, value), ""]
    if issubclass(value, enum.Enum):
        lines += [", ".join(f"`{member.name}`" for member in value), ""]
    for member, what in _members(value):
        if isinstance(what, property):
            shown = f"`{member}`"
        elif member == "__call__":
            shown = f"`{name}(…){_signature(what, bound=True)}`"
        else:
            shown = f"`{member}{_signature(what, bound=True)}`"
        lines += [f"#### {shown}", "", _doc(f"{module}.{name}", member, what), ""]
    return lines


def unlisted():
    """Public names of the package that no section has."""
    import tilewright

    listed = {name for _, module, names in _SECTIONS if module == "tilewright" for name in names.split()}
    return [
        name
        for name, value in vars(tilewright).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name not in listed
    ]


def _language():
    """The functions of the language by sections of its specification, from the compiler's table."""
    from . import language

    sections = {}
    for name, _, _, _, section in _core.functions():
        function = getattr(language, name, None)
        if name.isidentifier() and isinstance(function, LanguageFunction):
            sections.setdefault(section, []).append(function)
    lines = []
    for section in sorted(sections, key=lambda section: int(section.split()[0])):
        anchor = re.sub(r"[^a-z0-9 -]", "", section.lower()).replace(" ", "-")
        title = section.split(maxsplit=1)[1]
        lines += [f"### [{title}](language.md#{anchor})", ""]
        for function in sorted(sections[section], key=lambda f: f.name):
            lines.append(f"- `{function.__doc__.splitlines()[0]}`")
        lines.append("")
    return lines


def text():
    """The page. Raises `Undocumented` where a public name has no docstring."""
    missing = unlisted()
    if missing:
        raise Undocumented(f"`tilewright.{missing[0]}` is on no section of the reference")
    lines, heading = [_HEAD, ""], None
    for title, module, names in _SECTIONS:
        if title != heading:
            lines += [f"## {title}", ""]
            heading = title
        held = importlib.import_module(module)
        for name in names.split():
            lines += _entry(module, name, getattr(held, name))
    lines += ["## The language, `tilewright.language`", ""]
    lines += ["Each function stands under the section of its family, or under [other names](language.md#141-other-names).", ""]
    lines += _language()
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(text(), end="")
