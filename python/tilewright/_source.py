"""Functions as the compiler reads them: their text, and what they see."""

import functools
import inspect
import linecache
import re
import types
import weakref


def _text(path, module_globals):
    """The whole text of a file as Python read it, or None."""
    linecache.checkcache(path)
    lines = linecache.getlines(path, module_globals)
    return "".join(lines) or None


def parameters(function):
    """The names of a function's parameters, as they are written."""
    code = function.__code__
    names = code.co_varnames
    count = code.co_argcount + code.co_kwonlyargcount
    found = list(names[: code.co_argcount])
    if code.co_flags & inspect.CO_VARARGS:
        found.append(names[count])
    found += names[code.co_argcount : count]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        found.append(names[count + bool(code.co_flags & inspect.CO_VARARGS)])
    return found


def _inside(code):
    """A place in the body, where this Python knows columns."""
    places = getattr(code, "co_positions", tuple)()
    known = [(line, col) for line, _, col, end in places if line and col is not None and end > col]
    return min(known, default=None)


def _super(owner, instance):
    """`super` as a method sees it."""
    return lambda *args: super(*args) if args else super(owner, instance)


def describe(function, instance=None):
    """What the compiler asks of a function, and of the object that it is a method of.

    Its file and the file's text, first line, name, a place in its body, defaults, cells of the
    functions around it, and the names of its module.
    """
    code = function.__code__
    text = _text(code.co_filename, function.__globals__)
    names = code.co_varnames[: code.co_argcount]
    values = function.__defaults__ or ()
    defaults = list(zip(names[len(names) - len(values) :], values))
    defaults += list((function.__kwdefaults__ or {}).items())
    around = getattr(function, "__tilewright_names__", {})
    cells = {name: types.CellType(value) for name, value in around.items()}
    cells.update(zip(code.co_freevars, function.__closure__ or ()))
    if instance is not None and "__class__" in cells:
        cells["super"] = types.CellType(_super(cells["__class__"].cell_contents, instance))
    return (
        code.co_filename,
        text,
        code.co_firstlineno,
        code.co_name,
        _inside(code),
        defaults,
        cells,
        function.__globals__,
    )


def keep_names(function, frame):
    """Keeps what the function around has under names that a function mentions.

    Python keeps those that its code uses; annotations of local names are no code.
    """
    if frame.f_locals is frame.f_globals:
        return
    try:
        mentioned = set(re.findall(r"[A-Za-z_]\w*", inspect.getsource(function)))
    except (OSError, TypeError):
        return
    found = {name: value for name, value in frame.f_locals.items() if name in mentioned}
    found.pop(function.__name__, None)
    if found:
        function.__tilewright_names__ = found


def annotations(function, frame):
    """The annotations of a function's parameters, in order; None where there is none.

    Those that are kept as text are evaluated where the function is defined.
    """
    found = inspect.get_annotations(function)
    cells = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            cells[name] = cell.cell_contents
        except ValueError:
            pass
    out = []
    for name in parameters(function):
        value = found.get(name)
        if isinstance(value, str) and type(value) is str:
            names = {**(frame.f_locals if frame is not None else {}), **cells}
            value = eval(value, function.__globals__, names)
        out.append(value)
    return out


_USES = weakref.WeakKeyDictionary()


def _names_of(code):
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_of(constant)


def uses_language(function):
    """Whether a function speaks the language, so that it has a meaning only in a kernel."""
    known = _USES.get(function)
    if known is None:
        known = _USES[function] = _uses_language(function)
    return known


def _uses_language(function):
    from . import language
    from ._functions import Macro
    from ._values import LanguageFunction

    # Until it is known: a function that calls itself adds nothing.
    _USES[function] = False
    seen = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            seen[name] = cell.cell_contents
        except ValueError:
            pass
    for name in _names_of(function.__code__):
        value = seen.get(name)
        if value is language or isinstance(value, (LanguageFunction, Macro)):
            return True
        if isinstance(value, types.FunctionType) and uses_language(value):
            return True
    return False


def interpreted(object, of_kernel):
    """The function that the compiler runs itself when a kernel calls this object, the arguments
    that are bound to it, and whether it is a macro; None for what Python runs.

    A function that is given values of the kernel, or that speaks the language, is part of the
    kernel. Everything else is Python's.
    """
    from ._functions import Macro

    args, keywords = (), {}
    while isinstance(object, functools.partial):
        args = (*object.args, *args)
        keywords = {**object.keywords, **keywords}
        object = object.func
    is_macro = isinstance(object, Macro)
    if is_macro:
        object = object.function
    if isinstance(object, types.MethodType):
        object, args = object.__func__, (object.__self__, *args)
    elif not isinstance(object, (types.FunctionType, type)):
        method = getattr(type(object), "__call__", None)
        if isinstance(method, types.FunctionType):
            object, args = method, (object, *args)
    if not isinstance(object, types.FunctionType):
        return None
    if object.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        return None
    if object.__module__ and object.__module__.split(".")[0] == "tilewright":
        return None
    if not (is_macro or of_kernel or uses_language(object)):
        return None
    return object, args, keywords, is_macro
