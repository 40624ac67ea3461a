"""Timing and checking kernels with tensors of torch on a GPU."""

import enum


class TensorSupplyType(enum.Enum):
    """What the inputs of a profiled kernel hold."""

    Auto = 0
    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6


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
    """Milliseconds that a function takes on the GPU, with a cold L2 before each run.

    `warmup` and `rep` are milliseconds; the times of single runs are taken by events.
    """
    import torch

    fn()
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

    once = max(min(timed(5)), 1e-3)
    timed(_n_warmup or max(1, min(int(warmup / once), 1000)))
    times = torch.tensor(timed(_n_repeat or max(1, min(int(rep / once), 1000))))
    if quantiles is not None:
        found = torch.quantile(times, torch.tensor(quantiles)).tolist()
        return found[0] if len(found) == 1 else found
    return getattr(torch, return_mode)(times).item()


class Profiler:
    """Runs a kernel on inputs that it makes."""

    def __init__(self, kernel, tensor_supply_type=TensorSupplyType.Auto):
        self.kernel = kernel
        self.supply = tensor_supply_type

    def inputs(self):
        """One tensor or number for each argument."""
        return [self._input(*param) for param in self.kernel._given]

    _get_inputs = inputs

    def _input(self, name, kind, _, shape):
        import torch

        from ._values import dtype

        if shape is None:
            return 1
        if not all(n.isdigit() for n in shape):
            raise ValueError(
                f"`{name}` has sizes of the call ({', '.join(shape)}); give inputs of your own"
            )
        shape, wanted = [int(n) for n in shape], dtype(kind).as_torch()
        if self.supply is TensorSupplyType.Zero:
            return torch.zeros(shape, dtype=wanted, device="cuda")
        if self.supply is TensorSupplyType.One:
            return torch.ones(shape, dtype=wanted, device="cuda")
        if wanted == torch.bool:
            return torch.randint(0, 2, shape, device="cuda").to(wanted)
        if not wanted.is_floating_point or self.supply is TensorSupplyType.Integer:
            low = 0 if str(kind).startswith("uint") else -2
            return torch.randint(low, 3, shape, device="cuda").to(wanted)
        if self.supply is TensorSupplyType.Uniform:
            return (torch.rand(shape, device="cuda") * 2 - 1).to(wanted)
        return torch.randn(shape, device="cuda").to(wanted)

    def run_once(self, func=None):
        return (func or self.kernel)(*self.inputs())

    def assert_allclose(self, reference_program, input_tensors=None, atol=1e-2, rtol=1e-2, max_mismatched_ratio=0.0):
        """Compares the kernel's outputs with those of a program."""
        import torch

        inputs = self.inputs() if input_tensors is None else input_tensors
        expected, found = reference_program(*inputs), self.kernel(*inputs)
        if not isinstance(expected, (list, tuple)):
            expected = [expected]
        if not isinstance(found, (list, tuple)):
            found = [found]
        if len(found) != len(expected):
            raise ValueError(f"the kernel gives {len(found)} outputs, the program {len(expected)}")
        for a, b in zip(found, expected):
            if a is None or b is None:
                continue
            a, b = a.float(), b.float()
            wrong = (~torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)).sum().item()
            if wrong > max_mismatched_ratio * a.numel():
                torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True)

    def do_bench(self, func=None, warmup=25, rep=100, input_tensors=None, **options):
        """Milliseconds of the kernel, or of a function with the same arguments."""
        inputs = self.inputs() if input_tensors is None else input_tensors
        run = func or self.kernel
        known = {k: v for k, v in options.items() if k in ("quantiles", "backend", "return_mode")}
        return do_bench(lambda: run(*inputs), warmup, rep, **known)
