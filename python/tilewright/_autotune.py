"""`@autotune`: kernels with configurations to choose from."""

import functools
import inspect

from ._jit import JITFunction


class TunedFunction:
    """A `jit` function whose open parameters a configuration gives.

    Nothing is measured: the first configuration is taken, as the command line does.
    """

    def __init__(self, function, configs):
        if not isinstance(function, JITFunction):
            raise TypeError("`@autotune` stands above `@jit`")
        self.function = function
        self.configs = configs
        functools.update_wrapper(self, function, updated=())
        self.signature = function.signature

    @property
    def is_eager(self):
        return self.function.is_eager

    def _filled(self, args, keywords):
        given = self.signature.bind_partial(*args, **keywords).arguments
        configs = self.configs
        if callable(configs):
            takes = inspect.signature(configs).parameters
            configs = configs(*args, **keywords) if takes else configs()
        configs = list(configs or ())
        first = dict(configs[0]) if configs else {}
        for name, parameter in self.signature.parameters.items():
            # A default of None stands for the tuner's choice.
            is_open = parameter.default in (inspect.Parameter.empty, None)
            if name in first and name not in given and is_open:
                keywords[name] = first[name]
        return keywords

    def __call__(self, *args, **keywords):
        return self.function(*args, **self._filled(args, keywords))

    def compile(self, *args, **keywords):
        return self.function.compile(*args, **self._filled(args, keywords))


def autotune(func=None, *, configs=None, **options):
    """Decorates a `jit` function with configurations of its open parameters: a list of dicts, or a
    function that makes one. How to measure (`warmup`, `rep`, …) is accepted."""
    if func is not None and not isinstance(func, JITFunction):
        func, configs = None, func
    if func is None:
        return lambda function: TunedFunction(function, configs)
    return TunedFunction(func, configs)
