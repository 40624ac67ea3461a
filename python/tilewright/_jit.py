"""Kernels that can be called, and the decorators that make them."""

import functools
import inspect
import sys
import warnings

from . import _core, _gpu, _source, _target, _tensors, _torch_op
from ._errors import TilewrightWarning, plain
from ._functions import PrimFunc
from ._values import Deferred


class JITKernel:
    """A kernel that is called with tensors.

    The outputs that `out_idx` or `T.empty` name are made by the call and returned. Arrays of numpy
    and CPU tensors are computed by the reference evaluator, or in the simulator of the target that
    was asked for; tensors of a GPU on that GPU.
    """

    def __init__(self, core, target=None, function=None):
        self.core = core
        self.target = _target.parse(target)
        self.prim_func = function
        self._params = core.params
        self._given = [p for p in self._params if not p[2]]
        written = core.written
        self._writes = [name in written for name, *_ in self._given]
        self._number = _torch_op.register(self)
        # The short way of calls on a GPU, once one went the long way.
        self._launch = None
        for text in core.warnings:
            warnings.warn(text, TilewrightWarning, stacklevel=4)

    @property
    def params(self):
        """The names of the parameters in their order, outputs included."""
        return [name for name, *_ in self._params]

    def __call__(self, *args, **keywords):
        """Runs the kernel: an argument for each parameter that is no output, by place or name.

        Tensors are written in place where the kernel writes them. `None` is a null pointer of the
        size that the kernel states. Returns the output, a list of several, or `None`. On a GPU the
        kernel is queued on the current stream and the call does not wait for it.

        Raises `LaunchError` (or `LaunchTypeError`) where an argument does not fit, `LoweringError`
        and `ToolchainError` where a first call cannot be compiled, and `KernelError` where the
        kernel did something wrong while it ran.
        """
        if _torch_op.is_compiling():
            return _torch_op.call(self, self._bind(args, keywords))
        if self._launch is not None and not keywords:
            made = self._launch(*args)
            if made is not None:
                return made[0] if len(made) == 1 else list(made) or None
        values = self._bind(args, keywords)
        tensors = [v for (*_, shape), v in zip(self._given, values) if shape is not None]
        if any(_tensors.on_gpu(t) for t in tensors if _tensors.is_tensor(t)):
            made = _gpu.call(self, values)
            if self._launch is None:
                self._launch = _core.Launcher(self.core, self.target.name)
            return made
        return self._on_host(values, tensors)

    def _bind(self, args, keywords):
        names = [name for name, *_ in self._given]
        if len(args) > len(names):
            raise _tensors.refuse(
                "arg-unknown",
                f"`{self.core.name}` takes {len(names)} arguments, {len(args)} are given",
                (f"its arguments are: {', '.join(names)}",),
            )
        values = dict(zip(names, args))
        for name, value in keywords.items():
            if name not in names or name in values:
                why = "is given twice" if name in values else "is no argument"
                raise _tensors.refuse(
                    "arg-unknown",
                    f"`{name}` {why} of `{self.core.name}`",
                    (f"its arguments are: {', '.join(names)}",),
                )
            values[name] = value
        missing = [name for name in names if name not in values]
        if missing:
            raise _tensors.refuse(
                "arg-missing",
                f"`{self.core.name}` is called without `{missing[0]}`",
                (f"its arguments are: {', '.join(names)}",),
            )
        return [values[name] for name in names]

    def _on_host(self, values, tensors):
        given = []
        held, absent = {}, set()
        for (name, _, _, shape), value in zip(self._given, values):
            if shape is None and not _tensors.is_tensor(value):
                given.append((name, _tensors.number(name, value)))
                continue
            if value is None:
                given.append((name, None))
                absent.add(name)
                continue
            if not _tensors.is_tensor(value):
                raise _tensors.refuse(
                    "arg-kind", f"`{name}` is a tensor, not a {type(value).__name__}"
                )
            held[name] = _tensors.HostTensor(name, value)
            given.append((name, held[name].argument()))
        simulated = self.target.name if self.target.simulated else None
        for name in absent:
            try:
                self.core.null_facts(name)
            except ValueError as error:
                raise _tensors.refuse("arg-kind", str(error)) from None
        left, prints = self.core.run(simulated, given)
        for line in prints:
            print(line)
        as_torch = any(map(_tensors.is_torch, tensors))
        if not tensors:
            as_torch = "torch" in sys.modules
        made = {}
        for name, kind, shape, strides, data in left:
            if name in held:
                if data is not None:
                    held[name].store(data)
            elif name not in absent:
                made[name] = _tensors.make_output(kind, name, shape, strides, data, as_torch)
        return self._returned(made)

    def _returned(self, made):
        outputs = [made[name] for name, _, output, _ in self._params if output]
        if not outputs:
            return None
        return outputs[0] if len(outputs) == 1 else outputs

    def _source_target(self):
        return self.target.name or "sm_90a"

    def get_kernel_source(self, kernel_only=True):
        """The CUDA or HIP source that is compiled for the target. Raises `LoweringError` where the
        kernel cannot be compiled for it."""
        return self.core.source(self._source_target())

    def show_source(self):
        """Prints the source that is compiled."""
        print(self.get_kernel_source())

    def script(self):
        """The tile IR, as text."""
        return self.core.ir()

    def get_profiler(self, tensor_supply_type=None):
        """A `Profiler`, which times and checks the kernel on inputs that it makes."""
        from .profiler import Profiler, TensorSupplyType

        return Profiler(self, tensor_supply_type or TensorSupplyType.Auto)

    def export_sources(self, kernel_path):
        """Writes the source that is compiled into the file of this path. Raises `OSError` where that
        cannot be written."""
        with open(kernel_path, "w") as file:
            file.write(self.get_kernel_source())

    def __repr__(self):
        return f"<kernel {self.core.name}({', '.join(self.params)}) for {self.target}>"


def compile(
    func,
    out_idx=None,
    execution_backend=None,
    target=None,
    target_host=None,
    verbose=None,
    pass_configs=None,
    compile_flags=None,
):
    """Makes a kernel that can be called, a `JITKernel`, of a `@T.prim_func`.

    - `out_idx`: the parameter, or the list of them, that calls make and return; negative numbers
      count from the end.
    - `target`: what it is compiled for: `auto`, `cuda`, `hip`, a machine (`sm_80`, `sm_90a`,
      `gfx942`, `gfx950`), or `sim:NAME`, with which calls run in the simulator of that machine.
    - `pass_configs`: settings of the compiler by name; keys that mean nothing here are accepted.
    - `compile_flags`: further flags of the target's compiler, a string or a list.

    The other arguments are accepted and change nothing. Raises `TypeError` for what is no
    `@T.prim_func`, `ValueError` for a target that there is not, and `StagingError` for an `out_idx`
    that names no tensor.
    """
    if isinstance(func, JITKernel):
        return func
    if not isinstance(func, PrimFunc):
        raise TypeError(f"a `@T.prim_func` can be compiled, not a {type(func).__name__}")
    return JITKernel(_with_options(func.core, out_idx, pass_configs, compile_flags), target, func)


def par_compile(funcs, **options):
    """Makes kernels of several `@T.prim_func`s, with the options of `compile`: a list of
    `JITKernel`s in the same order. Raises what `compile` raises."""
    return [compile(func, **options) for func in funcs]


def _with_options(core, out_idx, pass_configs, compile_flags):
    """The recorded kernel with what a decorator or `compile` says of it."""
    flags = [compile_flags] if isinstance(compile_flags, str) else compile_flags
    if isinstance(out_idx, int):
        out_idx = [out_idx]
    # Keys of the enumeration of them, or their names.
    configs = {str(getattr(k, "value", k)): v for k, v in (pass_configs or {}).items()}
    if out_idx is None and not configs and not flags:
        return core
    return core.with_options(out_idx, configs or None, flags)


class JITFunction:
    """What `@tilewright.jit` makes of a function.

    A function that returns a kernel (lazy) gives one that can be called, the same one for the same
    arguments. A function that is a kernel itself (eager) is called with tensors at once; a kernel
    is compiled for each set of sizes and other arguments.
    """

    def __init__(self, function, options, frame):
        self.function = function
        self.options = options
        functools.update_wrapper(self, function, updated=())
        self.signature = inspect.signature(function)
        _source.keep_names(function, frame)
        self._annotations = None
        self._frame = frame
        self._eager = options.pop("mode", None)
        self._kernels = {}
        self._places = {}

    @property
    def is_eager(self):
        """Whether the function is a kernel itself, rather than one that returns a kernel."""
        if self._eager is None:
            self._eager = "eager" if _core.is_eager(self.function) else "lazy"
        return self._eager == "eager"

    def __call__(self, *args, **keywords):
        """Of a lazy function the kernel for these arguments, of an eager one its outputs for these
        tensors. Raises what the function raises, and what recording and calling a kernel raise."""
        if self.is_eager:
            kernel, tensors = self._eager_kernel(args, keywords)
            return kernel(**tensors)
        return self._lazy_kernel(args, keywords)

    def compile(self, *args, **keywords):
        """The `JITKernel` for these arguments; of an eager function, tensors or what has their shape
        (`T.Tensor((M, N), dtype)`)."""
        if self.is_eager:
            return self._eager_kernel(args, keywords)[0]
        return self._lazy_kernel(args, keywords)

    def get_kernel_source(self, *args, **keywords):
        """The source of the kernel for these arguments."""
        return self.compile(*args, **keywords).get_kernel_source()

    def _lazy_kernel(self, args, keywords):
        key = _cache_key(args, keywords)
        kernel = self._kernels.get(key) if key is not None else None
        if kernel is None:
            made = self.function(*args, **keywords)
            if isinstance(made, JITFunction):
                return made
            kernel = _kept(self._kernels, key, self._compiled(made))
        return kernel

    def _compiled(self, made):
        if isinstance(made, JITKernel):
            return made
        if not isinstance(made, PrimFunc):
            name = self.function.__name__
            message = f"`{name}` returned a {type(made).__name__}, not a kernel"
            code = self.function.__code__
            raise plain(
                "staging",
                "not-a-kernel",
                message,
                ("return the inner function decorated `@T.prim_func`",),
                code.co_filename,
                code.co_firstlineno,
            )
        return compile(made, **self.options)

    def _eager_kernel(self, args, keywords):
        bound = self.signature.bind(*args, **keywords)
        bound.apply_defaults()
        tensors, values = {}, {}
        for name, value in bound.arguments.items():
            is_tensor = _tensors.is_tensor(value) or _is_tensor_type(value)
            (tensors if is_tensor else values)[name] = value
        facts = {n: (str(t.dtype), tuple(t.shape)) for n, t in tensors.items()}
        key = _cache_key((), {**values, "": tuple(facts.items())})
        kernel = self._kernels.get(key) if key is not None else None
        if kernel is None:
            kernel = _kept(self._kernels, key, self._recorded(tensors, values))
        return kernel, tensors

    def _recorded(self, tensors, values):
        if self._annotations is None:
            self._annotations = _source.annotations(self.function, self._frame)
            self._frame = None
        # Annotations that only say that something is a tensor wait for the body.
        stated = [a if isinstance(a, Deferred) else None for a in self._annotations]
        given = list(values.items())
        consts = {}
        for const, tensor, dim in _core.const_places(self.function, stated, given):
            if tensor not in tensors:
                continue
            shape = tensors[tensor].shape
            if dim < len(shape):
                consts.setdefault(const, int(shape[dim]))
        # Sizes of the same kernel are the same kernel.
        key = _cache_key((), {**values, "": tuple(sorted(consts.items()))})
        kernel = self._places.get(key) if key is not None else None
        if kernel is None:
            core = _core.record_eager(self.function, stated, given, list(consts.items()))
            # Its outputs are what it returns.
            configs, flags = self.options["pass_configs"], self.options["compile_flags"]
            core = _with_options(core, None, configs, flags)
            kernel = _kept(self._places, key, JITKernel(core, self.options["target"]))
        return kernel

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return functools.partial(self, instance)

    def __repr__(self):
        return f"<jit {self.function.__name__}>"


def _kept(kernels, key, kernel):
    """The kernel of a key: the first one, where threads made several at once. Nothing is locked
    while one is made, for that may make others."""
    return kernel if key is None else kernels.setdefault(key, kernel)


def _is_tensor_type(value):
    """`T.Tensor((M, N), dtype)` stands for a tensor where only the shape matters."""
    return isinstance(value, Deferred) and repr(value).startswith("T.Tensor(")


def _cache_key(args, keywords):
    """Arguments as a key, or None where they have none."""
    key = (tuple(map(_typed, args)), tuple((n, _typed(v)) for n, v in sorted(keywords.items())))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _typed(value):
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(map(_typed, value)))
    if isinstance(value, dict):
        return (dict, tuple((k, _typed(v)) for k, v in value.items()))
    return (type(value), value)


def jit(
    func=None,
    *,
    out_idx=None,
    execution_backend=None,
    target=None,
    target_host=None,
    verbose=None,
    pass_configs=None,
    debug_root_path=None,
    compile_flags=None,
    mode=None,
):
    """Decorates a kernel, or a function that returns one; gives a `JITFunction`.

    A function that returns a `@T.prim_func` is lazy: called, it gives the kernel for its arguments.
    A function that annotates its tensors in its own body is eager: called with tensors, it computes.
    `mode="lazy"` or `mode="eager"` says which where the body does not.

    `out_idx`, `target`, `pass_configs` and `compile_flags` are those of `compile`; the other
    arguments are accepted and change nothing. The source of the function must be known: from its
    file, or from `linecache`. Raises `KernelSyntaxError` and `StagingError`, located in the
    function's file, when the kernel is recorded, which is when it is first needed.
    """
    if func is not None and not callable(func):
        func, out_idx = None, func
    frame = sys._getframe(1)
    if isinstance(func, PrimFunc):
        return compile(
            func, out_idx, target=target, pass_configs=pass_configs, compile_flags=compile_flags
        )

    def decorate(function):
        options = {
            "out_idx": out_idx,
            "target": target,
            "pass_configs": pass_configs,
            "compile_flags": compile_flags,
        }
        if mode in ("lazy", "eager"):
            options["mode"] = mode
        return JITFunction(function, options, frame)

    return decorate if func is None else decorate(func)


lazy_jit = functools.partial(jit, mode="lazy")
lazy_jit.__doc__ = 'As `jit` with `mode="lazy"`: the function returns a kernel.'
