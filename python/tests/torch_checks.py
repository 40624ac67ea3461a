"""Checks with tensors of torch, on the CPU and on a GPU. They need no pytest, so that a machine
with nothing but torch can run them: `python torch_checks.py`."""

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


def check_gpu_host_time():
    """How long a call takes on the host, beside an addition of torch."""
    kernel = tilewright.compile(add_in_place)
    x, y = (torch.ones(1000, device="cuda") for _ in range(2))

    def per_call(f):
        for _ in range(100):
            f()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(2000):
            f()
        took = time.perf_counter() - start
        torch.cuda.synchronize()
        return took / 2000 * 1e6

    ours, torchs = per_call(lambda: kernel(x, y, 1.0)), per_call(lambda: y.add_(x))
    print(f"  a call: {ours:.1f} us; torch's add_: {torchs:.1f} us")


CHECKS = {n: f for n, f in list(globals().items()) if n.startswith("check_")}


def main():
    failed = 0
    for name, check in CHECKS.items():
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
