"""Exceptions: one class for each kind, whose text is the located diagnostic."""


class TilewrightError(Exception):
    """What every exception of the compiler is.

    `str(error)` is the diagnostic with the lines of the program that it speaks of. `code` is its
    stable name, `message` its first line, `file`, `line` and `column` where it is, `help` what
    would help, `notes` what explains it.
    """

    code = ""
    message = ""
    file = None
    line = None
    column = None
    help = ()
    notes = ()


class KernelSyntaxError(TilewrightError, ValueError):
    """A kernel is written in Python that kernels cannot use."""


class StagingError(TilewrightError, ValueError):
    """A kernel cannot be recorded: a wrong name, type, shape or use of the language."""


class StagingTypeError(StagingError, TypeError):
    """The same, where a value has the wrong type."""


class LoweringError(TilewrightError, ValueError):
    """A recorded kernel cannot be compiled for its target."""


class ToolchainError(TilewrightError, RuntimeError):
    """No compiler for the target, or it refused the generated source."""


class LaunchError(TilewrightError, ValueError):
    """The arguments of a call do not fit the kernel."""


class LaunchTypeError(LaunchError, TypeError):
    """The same, where an argument has the wrong type or dtype."""


class KernelError(TilewrightError, RuntimeError):
    """A kernel did something wrong while it ran, or the device failed."""


class TilewrightWarning(UserWarning):
    """What the compiler tells although it is no error."""


_KINDS = {
    "syntax": KernelSyntaxError,
    "staging": StagingError,
    "lowering": LoweringError,
    "toolchain": ToolchainError,
    "launch": LaunchError,
    "run": KernelError,
}

_TYPES = {
    "wrong-type": StagingTypeError,
    "operand-types": StagingTypeError,
    "wrong-arity": StagingTypeError,
    "unknown-keyword": StagingTypeError,
    "arg-kind": LaunchTypeError,
    "arg-dtype": LaunchTypeError,
    "arg-missing": LaunchTypeError,
    "arg-unknown": LaunchTypeError,
}


def plain(kind, code, message, help=(), file=None, line=None):
    """An exception that Python itself has a reason for, in the form of a diagnostic."""
    text = f"error[{code}]: {message}"
    if file is not None:
        text += f"\n --> {file}:{line}"
    for one in help:
        text += f"\n  = help: {one}"
    return make(kind, text, code, message, file, line, help=help)


def make(kind, text, code, message, file=None, line=None, column=None, help=(), notes=()):
    """The exception of a diagnostic."""
    base = _KINDS[kind]
    found = _TYPES.get(code, base)
    error = (found if issubclass(found, base) else base)(text)
    error.code, error.message = code, message
    error.file, error.line, error.column = file, line, column
    error.help, error.notes = tuple(help), tuple(notes)
    return error
