"""`@autotune`: the fastest of a kernel's configurations."""

import ast
import functools
import inspect
import itertools
import sys

from . import _core, _tensors
from ._errors import TilewrightError, plain
from ._jit import JITFunction, JITKernel, _cache_key

# Options that other tuners have, and that have no meaning here.
_ACCEPTED = {"backend", "cache_input_tensors", "execution_backend", "supply_type", "target", "topk", "verbose"}
# Configurations that are tried of those that the tuner chose itself.
_KEPT = 40


class Tuning:
    """What tuning found.

    `config` was chosen, and takes `time` (`unit`: seconds, or cycles of a model); `rows` has a dict
    for each configuration: its `config`, and `time` and `runs`, or why it was `left_out` or
    `failed`. Printed it is a table.
    """

    def __init__(self, configs, report):
        best = report["best"]
        self.config = None if best is None else configs[best]
        self.time, self.unit = report["time"], report["unit"]
        self.certain, self.stored = report["certain"], report["stored"]
        self.target, self.on, self.device = report["target"], report["on"], report["device"]
        names = ("time", "runs", "left_out", "failed")
        self.rows = [
            {"config": config, **dict(zip(names, row))}
            for config, row in zip(configs, report["rows"])
        ]
        self._table = report["table"]

    def __str__(self):
        return self._table

    def __repr__(self):
        return f"<tuned on {self.device}: {self.config}>"


class TunedFunction:
    """A `jit` function whose open parameters the tuner chooses, once for each set of the others."""

    def __init__(self, function, configs, options):
        if not isinstance(function, JITFunction):
            raise TypeError("`@autotune` stands above `@jit`")
        self.function = function
        self.configs = configs
        self.options = options
        functools.update_wrapper(self, function, updated=())
        self.signature = function.signature
        self._tuned = {}

    @property
    def is_eager(self):
        """As of the `jit` function."""
        return self.function.is_eager

    def __call__(self, *args, **keywords):
        """Of a lazy function the kernel of the best configuration, of an eager one its outputs.
        Raises `KernelError` where no configuration can be used; its text is the table."""
        if not self.is_eager:
            return self.compile(*args, **keywords)
        chosen = self._chosen(args, keywords)
        return self.function(*args, **keywords, **chosen)

    def compile(self, *args, **keywords):
        """The kernel of the best configuration. Its `config`, `latency` (milliseconds, where they
        were measured) and `tuning` say what was found."""
        chosen = self._chosen(args, keywords)
        return self.function.compile(*args, **keywords, **chosen)

    def get_kernel_source(self, *args, **keywords):
        """The source of the kernel of the best configuration."""
        return self.compile(*args, **keywords).get_kernel_source()

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return functools.partial(self, instance)

    def __repr__(self):
        return f"<tuned {self.function.function.__name__}>"

    def _chosen(self, args, keywords):
        """The values of the best configuration for a call."""
        given = self.signature.bind_partial(*args, **keywords).arguments
        configs = self._configs(args, keywords, given)
        if not configs:
            return {}
        key = _call_key(given)
        tuning = self._tuned.get(key) if key is not None else None
        if tuning is None:
            tuning = self._tune(configs, args, keywords)
            if key is not None:
                tuning = self._tuned.setdefault(key, tuning)
        return tuning.config

    def _configs(self, args, keywords, given):
        """What is left of the configurations: parameters that the call does not give."""
        configs = self.configs
        if callable(configs):
            takes = inspect.signature(configs).parameters
            configs = configs(*args, **keywords) if takes else configs()
        if isinstance(configs, str):
            configs = self._auto(configs, given)
        left = []
        for config in configs or ():
            if not isinstance(config, dict):
                raise TypeError(f"a configuration is a dict, not a {type(config).__name__}")
            names = self.signature.parameters
            config = {n: v for n, v in config.items() if n in names and n not in given}
            if config not in left:
                left.append(config)
        return [] if left == [{}] else left

    def _auto(self, word, given):
        if word != "auto":
            raise ValueError(f'configs are a list, a function, or "auto", not {word!r}')
        target = self.function.options["target"]
        from . import _target

        axes = []
        for name in self.signature.parameters:
            values = [] if name in given else _core.values_to_try(name, _target.parse(target).name)
            if values:
                axes.append([(name, ast.literal_eval(value)) for value in values])
        if not axes:
            raise ValueError(
                f"no parameter of `{self.function.__name__}` has a name that says what could be "
                "tried of it (block_M, threads, num_stages, …); list the configurations"
            )
        return [dict(items) for items in itertools.product(*axes)]

    def _tune(self, configs, args, keywords):
        options = self.options
        kernels, first_error = [], None
        for config in configs:
            try:
                kernels.append(self.function.compile(*args, **keywords, **config))
            except Exception as error:
                first_error = first_error or error
                kernels.append(error)
        recorded = [k for k in kernels if isinstance(k, JITKernel)]
        if not recorded:
            raise first_error
        inputs = options["supply_prog"] and _supplied(options["supply_prog"], recorded[0])
        if inputs is None and self.is_eager:
            bound = self.signature.bind_partial(*args, **keywords).arguments
            inputs = [bound.get(name) for name, *_ in recorded[0]._given]
        target = recorded[0].target
        named = [[(n, repr(v)) for n, v in config.items()] for config in configs]
        wishes = {
            "target": target.name,
            "on": options["on"] or ("cost" if target.simulated else None),
            "keep": _KEPT if isinstance(self.configs, str) else None,
            "values": _sizes(recorded[0], inputs),
            "warmup": min(options["warmup"], 100),
            "rounds": options["rep"],
            "tolerance": options["tolerance"],
            "timeout": options["timeout"],
            "threads": options["threads"],
            "skip_check": options["skip_check"],
            "fresh": not options["use_cache"],
        }
        judge = self._judge(kernels, inputs)
        executor = options["executor"]
        here = executor is None
        if not here and wishes["on"] in (None, "gpu"):
            here = _compile_elsewhere(executor, recorded, target, options["timeout"]) is not None
        if here:
            tried = [k.core if isinstance(k, JITKernel) else _reason(k) for k in kernels]
            wishes["judge"], wishes["tell"] = judge, _line if sys.stderr.isatty() else None
            report = _core.tune(named, tried, wishes)
        else:
            report = _tuned_elsewhere(executor, named, _judged(kernels, judge), wishes)
        tuning = Tuning(configs, report)
        if sys.stderr.isatty():
            print(f"\r\033[K{self.function.__name__} on {tuning.device}", file=sys.stderr)
            print(tuning, end="", file=sys.stderr)
        if tuning.config is None:
            name = self.function.__name__
            message = f"no configuration of `{name}` can be used\n{tuning}"
            code = self.function.function.__code__
            error = plain("run", "tune-nothing", message, (), code.co_filename, code.co_firstlineno)
            raise error from first_error
        for kernel, row in zip(kernels, tuning.rows):
            if row["config"] == tuning.config and isinstance(kernel, JITKernel):
                kernel.config, kernel.tuning = tuning.config, tuning
                kernel.latency = tuning.time * 1e3 if tuning.unit == "seconds" else None
        return tuning

    def _judge(self, kernels, inputs):
        """Compares with the user's reference program, where there is one."""
        reference, options = self.options["ref_prog"], self.options
        if reference is None or options["skip_check"]:
            return None
        from .profiler import Profiler, _listed

        def judge(at):
            profiler = Profiler(kernels[at])
            given = inputs
            if given is None:
                given = profiler.inputs()
            if options["manual_check_prog"] is not None:
                found, expected = kernels[at](*given), reference(*given)
                options["manual_check_prog"](_listed(found), _listed(expected))
                return
            profiler.assert_allclose(
                reference,
                given,
                atol=options["atol"],
                rtol=options["rtol"],
                max_mismatched_ratio=options["max_mismatched_ratio"],
            )

        return judge


def _compile_elsewhere(executor, kernels, target, timeout=None):
    """Has an executor compile kernels for the GPU of this machine, and keeps what it made in the
    cache, where the tuner finds it. Returns how many were kept; `None` where there is no GPU."""
    found = None if target.simulated else _core.gpu_target(target.name)
    return None if found is None else _kept_of(executor, kernels, *found, timeout)


def _kept_of(executor, kernels, name, arch, timeout=None):
    jobs = [
        _submitted(executor, _core.compile_for_another, k.core.called_ir(), name, arch, k.core.fast_math)
        for k in kernels
    ]
    kept = 0
    for kernel, job in zip(kernels, jobs):
        try:
            made = _result(job, timeout)
        except TilewrightError as error:
            if error.code == "tune-executor":
                raise
            # It is compiled here too, where the error is said in the table.
            continue
        kept += _core.keep_of_another(kernel.core, name, arch, *made)
    return kept


def _judged(kernels, judge):
    """Each kernel as what can be sent elsewhere: its tile IR, or why it has none. Those that a
    reference program finds wrong stay here."""
    tried = []
    for at, kernel in enumerate(kernels):
        if not isinstance(kernel, JITKernel):
            tried.append(_reason(kernel))
            continue
        try:
            if judge is not None:
                judge(at)
            tried.append((kernel.core.called_ir(), kernel.core.fast_math))
        except Exception as error:
            tried.append(_reason(error))
    return tried


def _tuned_elsewhere(executor, configs, tried, wishes):
    """The report of one worker of an executor. All is done by one, so that its times are those of
    one machine; its compiler and its cache are used."""
    return _result(_submitted(executor, _tuned_here, configs, tried, wishes))


def _tuned_here(configs, tried, wishes):
    """What a worker runs."""
    return _core.tune(configs, tried, {**wishes, "judge": None, "tell": None})


def _submitted(executor, function, *args):
    try:
        return executor.submit(function, *args)
    except Exception as error:
        raise _executor_failed(error) from error


def _result(job, timeout=None):
    try:
        return job.result(timeout)
    except TilewrightError:
        raise
    except Exception as error:
        raise _executor_failed(error) from error


def _executor_failed(error):
    return plain(
        "run",
        "tune-executor",
        f"the executor did not do its work: {type(error).__name__}: {error}",
        (
            "its workers need the package `tilewright` of this version, and must take functions and "
            "plain values from this process",
            "without `executor` everything is done here",
        ),
    )


def _call_key(given):
    """A call by its values; of tensors, what decides the kernel."""
    facts = {}
    for name, value in given.items():
        if _tensors.is_tensor(value):
            value = ("tensor", str(value.dtype), tuple(value.shape), _tensors.on_gpu(value))
        facts[name] = value
    return _cache_key((), facts)


def _supplied(program, kernel):
    takes = inspect.signature(program).parameters
    made = program(kernel.params) if takes else program()
    return list(made) if isinstance(made, (list, tuple)) else [made]


def _sizes(kernel, inputs):
    """Sizes and scalars of a call, by their names."""
    found = {}
    for (name, _, _, shape), value in zip(kernel._given, inputs or ()):
        if shape is None:
            if isinstance(value, (bool, int, float)):
                found[name] = float(value)
        elif _tensors.is_tensor(value):
            found.update(
                (size, float(n))
                for size, n in zip(shape, _tensors.shape_of(value))
                if size.isidentifier()
            )
    return found


def _reason(error):
    """Why a configuration has no kernel, on one line."""
    if isinstance(error, TilewrightError):
        place = f" ({error.file}:{error.line})" if error.line else ""
        return f"{error.code}: {error.message}{place}"
    return f"{type(error).__name__}: {error}"


def _line(text):
    """Shows how far it is, on a line that is written over."""
    sys.stderr.write(f"\r\033[K{text[:100]}")
    sys.stderr.flush()


def autotune(
    func=None,
    *,
    configs=None,
    warmup=3,
    rep=200,
    timeout=None,
    supply_prog=None,
    ref_prog=None,
    atol=1e-2,
    rtol=1e-2,
    max_mismatched_ratio=0.01,
    skip_check=False,
    use_cache=True,
    on=None,
    tolerance=0.01,
    threads=0,
    executor=None,
    manual_check_prog=None,
    **accepted,
):
    """Decorates a `jit` function with configurations of its parameters, of which the fastest that is
    right is taken: a list of dicts, a function that makes one, or `"auto"`, which tries what the
    names of the open parameters allow (`block_M`, `threads`, `num_stages`, `schedule`, `enable_…`).

    They are compiled in parallel, compared with each other and with the reference evaluator (or with
    `ref_prog`, and by `manual_check_prog(found, expected)` where that is given), then timed in turns
    with a cold cache until no other can be faster by more than `tolerance`, in at most `rep` rounds
    after `warmup`. `timeout` is in seconds, for compiling one.
    `on` says what times them: `"gpu"`, `"model"` (the cycle model of gfx942 and gfx950), or
    `"cost"` (an estimate); without it a GPU where there is one, else the estimate. What was found
    is kept on disk by kernel, sizes, device and compiler; `use_cache=False` tunes anew.

    `executor`, a `concurrent.futures.Executor` (a pool of processes, a cluster's), works for this
    process. Where this machine has the GPU, its workers compile, and what one with other compilers
    made is not taken. Elsewhere one of its workers does everything, timing included: on its GPU, or
    by the model that `on` names. What is sent are tile IR and plain values; `ref_prog` stays here.

    Raises `TypeError` for options that there are not, for an executor without `submit` and for what
    is no `jit` function. Calls of what it gives raise `KernelError` where no configuration can be
    used or the executor fails.
    """
    unknown = sorted(set(accepted) - _ACCEPTED)
    if unknown:
        raise TypeError(f"autotune has no option {unknown[0]!r}")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"`executor` is a `concurrent.futures.Executor`, not a {type(executor).__name__}"
        )
    if func is not None and not isinstance(func, JITFunction):
        func, configs = None, func
    options = {
        "warmup": warmup,
        "rep": rep,
        "timeout": timeout,
        "supply_prog": supply_prog,
        "ref_prog": ref_prog,
        "atol": atol,
        "rtol": rtol,
        "max_mismatched_ratio": max_mismatched_ratio,
        "skip_check": skip_check,
        "use_cache": use_cache,
        "on": on,
        "tolerance": tolerance,
        "threads": threads,
        "executor": executor,
        "manual_check_prog": manual_check_prog,
    }
    if func is None:
        return lambda function: TunedFunction(function, configs, options)
    return TunedFunction(func, configs, options)
