"""Checks with tensors of torch, on the CPU and on a GPU. They need no pytest, so that a machine
with nothing but torch can run them: `python torch_checks.py`, with words for some of them only."""

import sys
import threading
import time

import torch

import tilewright
import tilewright.language as T


@tilewright.jit(out_idx=[-1])
def matmul(M, N, K, dtype="float16", block=64):
    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block, 32), dtype)
            B_shared = T.alloc_shared((32, block), dtype)
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * block, k * 32], A_shared)
                T.copy(B[k * 32, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block, bx * block])

    return gemm


@tilewright.jit
def scaled(X, factor: float = 2.0):
    N = T.const("N")
    X: T.Tensor[[N], T.float32]
    Y = T.empty([N], T.float32)
    with T.Kernel(T.ceildiv(N, 128), threads=128) as b:
        for i in T.Parallel(128):
            Y[b * 128 + i] = X[b * 128 + i] * factor
    return Y


@T.prim_func
def add_in_place(X: T.Tensor((1000,), torch.float32), Y: T.Tensor((1000,), torch.float32), a: T.float32):
    with T.Kernel(T.ceildiv(1000, 128), threads=128) as b:
        for i in T.Parallel(128):
            Y[b * 128 + i] = Y[b * 128 + i] + a * X[b * 128 + i]


def dynamic_add(dtype=torch.float32):
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as b:
            for i in T.Parallel(128):
                B[b * 128 + i] = A[b * 128 + i] + 1

    return tilewright.compile(kernel, out_idx=[1])


def refused(call, code):
    try:
        call()
    except tilewright.LaunchError as e:
        assert e.code == code, (e.code, str(e))
        return
    raise AssertionError(f"not refused: {code}")


def matmul_on(device, dtype):
    generator = torch.Generator().manual_seed(0)
    a = torch.randint(-2, 3, (64, 96), generator=generator).to(dtype).to(device)
    b = torch.randint(-2, 3, (96, 128), generator=generator).to(dtype).to(device)
    c = matmul(64, 128, 96, dtype)(a, b)
    assert c.dtype == dtype and c.device == a.device
    torch.testing.assert_close(c.float(), a.float() @ b.float(), rtol=0, atol=0)


def everything_on(device):
    x = torch.arange(1000, dtype=torch.float32, device=device)
    torch.testing.assert_close(scaled(x), x * 2)
    torch.testing.assert_close(scaled(x[:300].clone(), 0.5), x[:300] * 0.5)
    y = torch.ones_like(x)
    assert tilewright.compile(add_in_place)(x, y, 3) is None
    torch.testing.assert_close(y, 1 + 3 * x)
    kernel = dynamic_add()
    for n in (1, 500, 1000):
        torch.testing.assert_close(kernel(x[:n].clone()), x[:n] + 1)
    refused(lambda: kernel(torch.ones(2000, device=device)[::2]), "arg-strides")
    refused(lambda: kernel(torch.ones(4, device=device, dtype=torch.float64)), "arg-dtype")
    refused(lambda: kernel(torch.ones(2, 2, device=device)), "arg-rank")
    assert T.bfloat16 == torch.bfloat16 and T.float16.as_torch() is torch.float16


def check_cpu():
    everything_on("cpu")
    matmul_on("cpu", torch.float16)
    matmul_on("cpu", torch.bfloat16)


def check_cpu_in_a_simulator():
    x = torch.arange(10, dtype=torch.float32)

    @tilewright.jit(target="sim:gfx950")
    def negated(X):
        N = T.const("N")
        X: T.Tensor[[N], T.float32]
        Y = T.empty([N], T.float32)
        with T.Kernel(1, threads=64):
            for i in T.Parallel(N):
                Y[i] = -X[i]
        return Y

    torch.testing.assert_close(negated(x), -x)


def check_autograd():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return scaled(x, factor)

        @staticmethod
        def backward(ctx, grad):
            return scaled(grad.contiguous(), ctx.factor), None

    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(256, device=device, requires_grad=True)
    Scale.apply(x, 3.0).sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x, 3.0))


def check_compiled():
    """Under `torch.compile` calls are an operator: graphs are whole, also where tensors are written."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    plus, in_place = dynamic_add(), tilewright.compile(add_in_place)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def program(x, y):
        z = plus(x * 2)
        in_place(x, y, 3.0)
        return z - 1, y * 2

    for _ in range(2):
        x = torch.arange(1000, dtype=torch.float32, device=device)
        y = torch.ones_like(x)
        z, w = program(x, y)
        torch.testing.assert_close(z, x * 2)
        torch.testing.assert_close(y, 1 + 3 * x)
        torch.testing.assert_close(w, 2 + 6 * x)

    @T.prim_func
    def both(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                Y[i] = X[i] * 2
                X[i] = X[i] + 1

    doubled = tilewright.compile(both, out_idx=[1])

    @torch.compile(fullgraph=True, backend="aot_eager")
    def mixed(x):
        return doubled(x) + x

    x = torch.ones(64, device=device)
    torch.testing.assert_close(mixed(x), torch.full_like(x, 4.0))
    assert (x == 2).all()

    @torch.compile(fullgraph=True, backend="aot_eager", dynamic=True)
    def sizes(x):
        return plus(x)

    for n in (5, 17, 300):
        x = torch.ones(n, device=device)
        torch.testing.assert_close(sizes(x), x + 1)


def check_none():
    """None is a null pointer; a kernel that reads it is at fault."""
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def make(used):
        @T.prim_func
        def kernel(X: T.Tensor((64,), "float32"), bias: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                for i in T.Parallel(64):
                    if used:
                        X[i] = X[i] + bias[i]
                    else:
                        X[i] = X[i] + 1

        return tilewright.compile(kernel)

    x = torch.zeros(64, device=device)
    make(False)(x, None)
    assert (x == 1).all()
    make(True)(x, x.clone())
    assert (x == 2).all()
    n = T.dynamic("n")

    @T.prim_func
    def sized(X: T.Tensor((64,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                X[i] = X[i] + 1

    refused(lambda: tilewright.compile(sized)(x, None), "arg-kind")


def check_gpu():
    everything_on("cuda")
    matmul_on("cuda", torch.float16)
    matmul_on("cuda", torch.bfloat16)


def check_gpu_large():
    a = torch.randn(2048, 1024, device="cuda", dtype=torch.float16)
    b = torch.randn(1024, 2048, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(matmul(2048, 2048, 1024, block=128)(a, b), a @ b, rtol=1e-2, atol=1e-1)


def check_gpu_mixed_devices():
    kernel = tilewright.compile(add_in_place)
    x = torch.ones(1000, device="cuda")
    refused(lambda: kernel(x, torch.ones(1000), 1.0), "arg-device")


def check_gpu_stream():
    """The kernel runs behind what the current stream has, and not beside it."""
    stream = torch.cuda.Stream()
    kernel = dynamic_add()
    kernel(torch.zeros(1000, device="cuda"))
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        x = torch.zeros(1 << 24, device="cuda")
        torch.cuda._sleep(100_000_000)
        x += 5
        y = kernel(x)
    stream.synchronize()
    assert (y == 6).all()


def check_gpu_graph():
    kernel = dynamic_add()
    x = torch.zeros(4096, device="cuda")
    kernel(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = kernel(x)
    for value in (1.0, 2.0):
        x.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        assert (y == value + 1).all()


def check_gpu_split_sums():
    """Few tiles: sums are split along K and added up by a second kernel. The memory of the parts is
    torch's, also while a graph is recorded and on streams side by side."""
    kernel = matmul(128, 256, 16384)
    assert kernel.get_kernel_source().count("__global__") == 2
    a, b = (torch.randn(n, 16384, device="cuda", dtype=torch.float16) / 128 for n in (128, 256))
    right = (a.float() @ b.float().T).half()
    torch.testing.assert_close(kernel(a, b.T.contiguous()), right, rtol=1e-2, atol=1e-2)
    b = b.T.contiguous()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = kernel(a, b)
    for factor in (1.0, 2.0):
        a.fill_(factor / 128)
        graph.replay()
        torch.cuda.synchronize()
        torch.testing.assert_close(c, (a.float() @ b.float()).half(), rtol=1e-2, atol=1e-2)
    streams = [torch.cuda.Stream() for _ in range(4)]
    results = []
    for turn in range(40):
        with torch.cuda.stream(streams[turn % 4]):
            results.append((turn, kernel(a * turn, b)))
    torch.cuda.synchronize()
    for turn, c in results:
        torch.testing.assert_close(c, (a.float() * turn @ b.float()).half(), rtol=2e-2, atol=2e-1)
    microseconds = per_call(lambda: kernel(a, b), runs=500)
    print(f"  a call with split sums: {microseconds:.1f} us of the host's time")


def check_gpu_threads():
    errors = []

    def work(n):
        try:
            for _ in range(50):
                x = torch.full((n,), float(n), device="cuda")
                torch.testing.assert_close(scaled(x), x * 2)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(1000 + n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


def check_gpu_profiler():
    profiler = matmul(1024, 1024, 1024, block=128).get_profiler()
    profiler.assert_allclose(lambda a, b: a @ b, rtol=1e-2, atol=1e-1)
    took = profiler.do_bench()
    assert 0 < took < 100
    print(f"  1024x1024x1024: {took * 1e3:.1f} us")


def check_gpu_cupy():
    try:
        import cupy
    except ImportError:
        print("  no cupy")
        return
    x = cupy.arange(1000, dtype=cupy.float32)
    y = dynamic_add()(x)
    assert isinstance(y, cupy.ndarray) and bool((y == x + 1).all())


def per_call(f, runs=2000, turns=7):
    """Microseconds of the host for a call, the least of several turns."""
    for _ in range(100):
        f()
    least = float("inf")
    for _ in range(turns):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(runs):
            f()
        least = min(least, (time.perf_counter() - start) / runs * 1e6)
    torch.cuda.synchronize()
    return least


def triton_add():
    """A call of Triton with three tensors, where it is installed."""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return None
    import linecache

    source = (
        "@triton.jit\n"
        "def add(x, y, z, n, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    tl.store(z + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)\n"
    )
    # Triton reads the source of its kernels, from a file or from here.
    name = "<triton add>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = {"triton": triton, "tl": tl, "__name__": __name__}
    exec(compile(source, name, "exec"), names)
    return lambda x, y, z: names["add"][(8,)](x, y, z, 1000, BLOCK=128)


def check_gpu_host_time():
    """The host's time of a call with three tensors, beside an empty launch, Triton and torch."""

    @T.prim_func
    def add(X: T.Tensor((1000,), "float32"), Y: T.Tensor((1000,), "float32"), Z: T.Tensor((1000,), "float32")):
        with T.Kernel(T.ceildiv(1000, 128), threads=128) as b:
            for i in T.Parallel(128):
                Z[b * 128 + i] = X[b * 128 + i] + Y[b * 128 + i]

    kernel = tilewright.compile(add)
    x, y, z = (torch.ones(1000, device="cuda") for _ in range(3))
    kernel(x, y, z)
    assert kernel._launch(x, y, z) == ()
    ours = per_call(lambda: kernel(x, y, z))
    empty = per_call(lambda: torch.cuda._sleep(0))
    times = {"tilewright": ours, "empty launch": empty, "torch.add": per_call(lambda: torch.add(x, y, out=z))}
    triton = triton_add()
    if triton is not None:
        times["triton"] = per_call(lambda: triton(x, y, z))
    print("  " + ", ".join(f"{name}: {us:.2f} us" for name, us in times.items()))
    assert ours - empty <= 3.0, f"{ours - empty:.2f} us over an empty launch"


def tuned_matmul(configs, M=4096, N=4096, K=4096):
    @tilewright.autotune(configs=configs, use_cache=False)
    @tilewright.jit(out_idx=[-1])
    def gemm(block_M=None, block_N=None, block_K=None, num_stages=None, threads=None, skip=0):
        @T.prim_func
        def kernel(
            A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")
        ):
            with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
                a = T.alloc_shared((block_M, block_K), "float16")
                b = T.alloc_shared((block_K, block_N), "float16")
                c = T.alloc_fragment((block_M, block_N), "float32")
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, block_K) - skip, num_stages=num_stages):
                    T.copy(A[by * block_M, k * block_K], a)
                    T.copy(B[k * block_K, bx * block_N], b)
                    T.gemm(a, b, c)
                T.copy(c, C[by * block_M, bx * block_N])

        return kernel

    return gemm


def check_gpu_tuning():
    """60 configurations, a wrong and a broken one among them: the best of an exhaustive search."""
    import itertools

    names = ("block_M", "block_N", "block_K", "num_stages", "threads")
    sizes = itertools.product((64, 128, 256), (64, 128, 256), (32, 64), (2, 3, 4), (128, 256))
    configs = [dict(zip(names, values)) for values in sizes][:58]
    configs.append(dict(configs[20], skip=32))
    configs.append(dict(configs[20], block_M=4096, block_N=4096))
    gemm = tuned_matmul(configs)
    start = time.perf_counter()
    kernel = gemm()
    took = time.perf_counter() - start
    rows = kernel.tuning.rows
    print(f"  {len(rows)} configurations in {took:.1f} s: {kernel.config}, {kernel.latency:.4f} ms")
    print("\n".join("  " + line for line in str(kernel.tuning).splitlines()))
    assert rows[-2]["failed"] and rows[-1]["failed"]
    a, b = (torch.randn(4096, 4096, device="cuda", dtype=torch.float16) for _ in range(2))
    timed = {}
    for at, row in enumerate(rows):
        if row["failed"] is None:
            other = gemm.function.compile(**row["config"])
            timed[at] = tilewright.profiler.do_bench(lambda: other(a, b), 5, 20, return_mode="median")
    best = min(timed, key=timed.get)
    # The two against each other, in turns.
    rival = gemm.function.compile(**rows[best]["config"])
    quotients = []
    for _ in range(15):
        ours = tilewright.profiler.do_bench(lambda: kernel(a, b), 1, 10, return_mode="median")
        theirs = tilewright.profiler.do_bench(lambda: rival(a, b), 1, 10, return_mode="median")
        quotients.append(ours / theirs)
    quotient = sorted(quotients)[len(quotients) // 2]
    print(f"  exhaustive: {rows[best]['config']}, {timed[best]:.4f} ms; ours takes {quotient:.4f} of it")
    assert quotient <= 1.01 and took < 40


def check_gpu_soak():
    """A million launches leave nothing behind."""
    import resource

    kernel = tilewright.compile(add_in_place)
    x, y = (torch.zeros(1000, device="cuda") for _ in range(2))
    for _ in range(10_000):
        kernel(x, y, 0.0)
    torch.cuda.synchronize()
    before, memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, torch.cuda.mem_get_info()[0]
    for _ in range(1_000_000):
        kernel(x, y, 0.0)
    torch.cuda.synchronize()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    lost = (memory - torch.cuda.mem_get_info()[0]) / 1e6
    print(f"  the host grew by {grown:.1f} MB, the GPU by {lost:.1f} MB")
    assert grown < 16 and lost < 16


CHECKS = {n: f for n, f in list(globals().items()) if n.startswith("check_")}


def main():
    failed = 0
    for name, check in CHECKS.items():
        if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
            continue
        if name.startswith("check_gpu") and not torch.cuda.is_available():
            print(f"skipped {name}: no GPU")
            continue
        try:
            check()
            print(f"ok      {name}", flush=True)
        except Exception as e:
            failed += 1
            print(f"FAILED  {name}: {type(e).__name__}: {e}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
