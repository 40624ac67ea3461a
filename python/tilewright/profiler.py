"""Timing and checking kernels: with tensors of torch on a GPU, elsewhere with arrays of numpy, or
tensors of the CPU where torch is loaded."""

import enum
import statistics
import sys
import time


class TensorSupplyType(enum.Enum):
    """What the inputs of a profiled kernel hold."""

    Auto = 0
    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6


def _gpu_torch():
    """torch, where it is installed and has a GPU."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def do_bench(
    fn,
    warmup=25,
    rep=100,
    _n_warmup=0,
    _n_repeat=0,
    quantiles=None,
    fast_flush=True,
    backend="event",
    return_mode="mean",
):
    """Milliseconds that a function takes: on the GPU, with a cold L2 before each run and times by
    events; on a machine without one, of the host's clock.

    `fn` is called without arguments. `warmup` and `rep` are the milliseconds that are spent on runs
    that do not count and on those that do; `_n_warmup` and `_n_repeat` are numbers of runs instead.
    `quantiles` asks for these of the times; without it `return_mode` is `mean`, `median`, `min` or
    `max`, and any other raises `ValueError`. What `fn` raises is raised.
    """
    torch = _gpu_torch()
    fn()
    timed = _events(torch, fn) if torch is not None else _clock(fn)
    once = max(min(timed(5 if torch is not None else 1)), 1e-3)
    warm = _n_warmup or max(1, min(int(warmup / once), 1000))
    if torch is not None or _n_warmup:
        timed(warm)
    times = timed(_n_repeat or max(1, min(int(rep / once), 1000)))
    if quantiles is not None:
        found = [_quantile(times, q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    modes = {"mean": statistics.fmean, "median": statistics.median, "min": min, "max": max}
    if return_mode not in modes:
        raise ValueError(f"return_mode is one of {', '.join(modes)}, not {return_mode!r}")
    return modes[return_mode](times)


def _events(torch, fn):
    torch.cuda.synchronize()
    cold = torch.empty(256 << 20, dtype=torch.int8, device="cuda")

    def timed(count):
        marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
        for start, end in marks:
            cold.zero_()
            start.record()
            fn()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in marks]

    return timed


def _clock(fn):
    def timed(count):
        times = []
        for _ in range(count):
            start = time.perf_counter()
            fn()
            times.append((time.perf_counter() - start) * 1e3)
        return times

    return timed


def _quantile(times, q):
    """Between the two times next to it, in proportion."""
    times = sorted(times)
    at = q * (len(times) - 1)
    low = int(at)
    high = min(low + 1, len(times) - 1)
    return times[low] + (times[high] - times[low]) * (at - low)


class Profiler:
    """Runs a kernel on inputs that it makes: tensors of torch on the GPU where there is one, else
    arrays of numpy, or tensors of the CPU where torch is loaded."""

    def __init__(self, kernel, tensor_supply_type=TensorSupplyType.Auto):
        self.kernel = kernel
        self.supply = tensor_supply_type

    def inputs(self):
        """One tensor or number for each argument. Raises `ValueError` where a size is known at a call
        only."""
        return [self._input(*param) for param in self.kernel._given]

    _get_inputs = inputs

    def _input(self, name, kind, _, shape):
        from ._values import dtype

        if shape is None:
            return 1
        if not all(n.isdigit() for n in shape):
            raise ValueError(
                f"`{name}` has sizes of the call ({', '.join(shape)}); give inputs of your own"
            )
        shape, kind = [int(n) for n in shape], dtype(kind)
        torch = _gpu_torch() or sys.modules.get("torch")
        if torch is not None and not self.kernel.target.simulated:
            device = "cuda" if torch.cuda.is_available() else "cpu"
            return self._of_torch(torch, device, shape, kind)
        import numpy

        return self._numbers(numpy, shape, kind).astype(kind.as_numpy())

    def _of_torch(self, torch, device, shape, kind):
        wanted = kind.as_torch()
        supply = self.supply
        if supply is TensorSupplyType.Zero:
            return torch.zeros(shape, dtype=wanted, device=device)
        if supply is TensorSupplyType.One:
            return torch.ones(shape, dtype=wanted, device=device)
        if wanted == torch.bool:
            return torch.randint(0, 2, shape, device=device).to(wanted)
        if not wanted.is_floating_point or supply is TensorSupplyType.Integer:
            low = 0 if str(kind).startswith("uint") else -2
            return torch.randint(low, 3, shape, device=device).to(wanted)
        if supply is TensorSupplyType.Uniform:
            return (torch.rand(shape, device=device) * 2 - 1).to(wanted)
        return torch.randn(shape, device=device).to(wanted)

    def _numbers(self, numpy, shape, kind):
        supply = self.supply
        if supply is TensorSupplyType.Zero:
            return numpy.zeros(shape)
        if supply is TensorSupplyType.One:
            return numpy.ones(shape)
        name = str(kind)
        if name == "bool":
            return numpy.random.randint(0, 2, shape)
        if "float" not in name or supply is TensorSupplyType.Integer:
            return numpy.random.randint(0 if name.startswith("uint") else -2, 3, shape)
        if supply is TensorSupplyType.Uniform:
            return numpy.random.uniform(-1, 1, shape)
        return numpy.random.standard_normal(shape)

    def run_once(self, func=None):
        """What the kernel, or a function with the same arguments, gives for such inputs."""
        return (func or self.kernel)(*self.inputs())

    def assert_allclose(
        self,
        reference_program,
        input_tensors=None,
        atol=1e-2,
        rtol=1e-2,
        max_mismatched_ratio=0.0,
    ):
        """Compares the kernel's outputs with those of a program that gets the same inputs.

        Elements differ where `|found - expected| > atol + rtol * |expected|`; `max_mismatched_ratio`
        of them may. Raises `AssertionError` where more do or a shape is another, and `ValueError`
        where there are more or fewer outputs.
        """
        inputs = self.inputs() if input_tensors is None else input_tensors
        expected, found = _listed(reference_program(*inputs)), _listed(self.kernel(*inputs))
        if len(found) != len(expected):
            raise ValueError(f"the kernel gives {len(found)} outputs, the program {len(expected)}")
        for at, (a, b) in enumerate(zip(found, expected)):
            if a is None or b is None:
                continue
            if tuple(a.shape) != tuple(b.shape):
                raise AssertionError(
                    f"output {at} has the shape {tuple(a.shape)}, the program's {tuple(b.shape)}"
                )
            wrong, total, most = _differences(a, b, rtol, atol)
            if wrong > max_mismatched_ratio * total:
                raise AssertionError(
                    f"output {at} differs from the program's in {wrong} of {total} elements; "
                    f"the largest difference is {most:.4g}"
                )

    def do_bench(self, func=None, warmup=25, rep=100, input_tensors=None, **options):
        """Milliseconds of the kernel, or of a function with the same arguments, as the function
        `do_bench` takes them. `n_warmup` and `n_repeat` are numbers of runs."""
        inputs = self.inputs() if input_tensors is None else input_tensors
        run = func or self.kernel
        passed = ("quantiles", "backend", "return_mode")
        known = {k: v for k, v in options.items() if k in passed}
        counts = {"_n_warmup": options.get("n_warmup", 0), "_n_repeat": options.get("n_repeat", 0)}
        return do_bench(lambda: run(*inputs), warmup, rep, **counts, **known)


def _listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _differences(found, expected, rtol, atol):
    """How many elements differ, of how many, and by how much at most."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(found, torch.Tensor):
        found = found.detach().double()
        expected = torch.as_tensor(expected, device=found.device).detach().double()
        near = torch.isclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)
        off = torch.where(near, 0.0, (found - expected).abs())
        return int((~near).sum()), found.numel(), float(off.max()) if found.numel() else 0.0
    import numpy

    found, expected = (numpy.asarray(x).astype(numpy.float64) for x in (found, expected))
    near = numpy.isclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)
    off = numpy.where(near, 0.0, numpy.abs(found - expected))
    return int((~near).sum()), found.size, float(off.max()) if found.size else 0.0
