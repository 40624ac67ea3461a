"""What is wrong with a program is an exception that says where and what would help."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tilewright
import tilewright.language as T


def line_of(text):
    """The line of this file that holds a text, from one."""
    for number, line in enumerate(open(__file__), 1):
        if text in line and "line_of" not in line:
            return number
    raise AssertionError(text)


def test_staging_error_has_its_place():
    with pytest.raises(tilewright.StagingError) as caught:

        @T.prim_func
        def kernel(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=4):
                A[0] = unknown_thing  # noqa: F821

    error = caught.value
    assert error.code == "unknown-name"
    assert error.line == line_of("A[0] = unknown_thing")
    assert error.file == __file__
    assert isinstance(error, ValueError)
    assert "A[0] = unknown_thing" in str(error)


def test_suggestions_name_what_python_has():
    with pytest.raises(tilewright.StagingError) as caught:

        @T.prim_func
        def kernel(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=4):
                A[0] = line_off("x")  # noqa: F821

    assert any("line_of" in text for text in caught.value.help)


def test_wrong_types_are_type_errors():
    with pytest.raises(TypeError) as caught:

        @T.prim_func
        def kernel(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=4):
                T.copy(A, 3)

    assert isinstance(caught.value, tilewright.StagingError)
    assert caught.value.code == "wrong-type"


def test_syntax_that_kernels_lack():
    with pytest.raises(tilewright.KernelSyntaxError) as caught:

        @T.prim_func
        def kernel(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=4):
                A[0] = b"bytes"

    assert caught.value.line == line_of('A[0] = b"bytes"')


def helper_that_raises(n):
    raise KeyError(f"no {n}")


def test_exceptions_of_python_code_are_the_cause():
    with pytest.raises(tilewright.StagingError) as caught:

        @T.prim_func
        def kernel(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=4):
                A[0] = helper_that_raises(7)

    error = caught.value
    assert error.code == "python-exception"
    assert isinstance(error.__cause__, KeyError)
    assert error.line == line_of("A[0] = helper_that_raises(7)")
    assert "KeyError" in str(error)


def test_a_factory_raises_its_own_exception():
    @tilewright.jit
    def factory(n):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        factory(3)


def test_a_factory_that_returns_no_kernel():
    @tilewright.jit
    def factory(n):
        return n

    with pytest.raises(tilewright.StagingError, match="returned a int, not a kernel"):
        factory(3)


def test_a_kernel_that_launches_nothing():
    with pytest.raises(tilewright.StagingError) as caught:

        @T.prim_func
        def kernel(A: T.Tensor((4,), "float32")):
            pass

    assert caught.value.code == "not-a-kernel"


def test_functions_without_a_source():
    names = {"T": T}
    text = """
@T.prim_func
def kernel(A: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=4):
        A[0] = 1
"""
    with pytest.raises(tilewright.StagingError) as caught:
        exec(compile(text, "<made up>", "exec"), names)
    assert caught.value.code == "no-source"
    assert "<made up>" in str(caught.value)


def test_a_source_that_linecache_knows():
    import linecache

    text = """
@T.prim_func
def kernel(A: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=4):
        for i in T.Parallel(4):
            A[i] = i
"""
    linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(True), "<cell 1>")
    names = {"T": T}
    exec(compile(text, "<cell 1>", "exec"), names)
    a = np.zeros(4, np.float32)
    tilewright.compile(names["kernel"])(a)
    np.testing.assert_array_equal(a, np.arange(4))


def test_language_outside_a_kernel():
    with pytest.raises(tilewright.StagingError, match="outside a kernel"):
        T.copy(1, 2)
    with pytest.raises(tilewright.StagingError, match="T.const"):
        T.const("M")
    with pytest.raises(TypeError):
        T.Tensor((4,), "float32", nothing=3)
    with pytest.raises(AttributeError, match="no `T.nothing`"):
        T.nothing
    with pytest.raises(TypeError, match="no truth in Python"):
        bool(T.dynamic("n") > 3)
    assert T.ceildiv(10, 4) == 3


@tilewright.jit(out_idx=[-1])
def add(n, dtype="float32"):
    @T.prim_func
    def kernel(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as b:
            for i in T.Parallel(32):
                C[b * 32 + i] = A[b * 32 + i] + B[b * 32 + i]

    return kernel


@pytest.mark.parametrize(
    "wrong, code",
    [
        (lambda a: (a,), "arg-missing"),
        (lambda a: (a, a, a), "arg-unknown"),
        (lambda a: (a, a[:5]), "arg-shape"),
        (lambda a: (a, a.reshape(2, 5)), "arg-rank"),
        (lambda a: (a, a.astype(np.float64)), "arg-dtype"),
        (lambda a: (a, np.zeros(20, np.float32)[::2]), "arg-strides"),
        (lambda a: (a, a[::-1]), "arg-strides"),
        (lambda a: (a, 3), "arg-kind"),
        (lambda a: (a, [1.0] * 10), "arg-kind"),
        (lambda a: (a, "b"), "arg-kind"),
    ],
)
def test_arguments_that_do_not_fit(wrong, code):
    with pytest.raises(tilewright.LaunchError) as caught:
        add(10)(*wrong(np.zeros(10, np.float32)))
    assert caught.value.code == code
    assert isinstance(caught.value, (ValueError, TypeError))


def test_read_only_tensors_are_not_written():
    @T.prim_func
    def kernel(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=4):
            for i in T.Parallel(4):
                A[i] = 1

    a = np.zeros(4, np.float32)
    a.flags.writeable = False
    with pytest.raises(tilewright.LaunchError, match="read-only"):
        tilewright.compile(kernel)(a)
    assert not a.any()


def test_what_a_kernel_does_wrong_is_found():
    @T.prim_func
    def kernel(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=4):
            never_written = T.alloc_shared((4,), "float32")
            for i in T.Parallel(4):
                A[i] = never_written[i]

    with pytest.raises(RuntimeError) as caught:
        tilewright.compile(kernel)(np.zeros(4, np.float32))
    assert isinstance(caught.value, tilewright.KernelError)
    assert caught.value.code == "uninitialised-read"
    assert caught.value.line == line_of("A[i] = never_written[i]")


def test_what_a_target_cannot_do_is_a_lowering_error():
    @T.prim_func
    def kernel(A: T.Tensor((256, 256), "float32")):
        with T.Kernel(1, threads=64):
            tile = T.alloc_shared((256, 256), "float32")
            T.copy(A, tile)
            T.copy(tile, A)

    with pytest.raises(tilewright.LoweringError) as caught:
        tilewright.compile(kernel, target="sm_80").get_kernel_source()
    assert caught.value.line == line_of("tile = T.alloc_shared((256, 256)")


def test_targets():
    for name in ["auto", "cuda", "hip", "sm_90", "gfx942", "cuda -arch=sm_90a", "sim:gfx950"]:
        tilewright.compile(add(4).prim_func, target=name)
    with pytest.raises(ValueError, match="sim:NAME"):
        tilewright.compile(add(4).prim_func, target="pdp11")


def test_out_idx():
    kernel = add(4).prim_func
    with pytest.raises(tilewright.StagingError) as caught:
        tilewright.compile(kernel, out_idx=[7])
    assert caught.value.code == "out-idx"
    assert tilewright.compile(kernel, out_idx=2)(*[np.ones(4, np.float32)] * 2).tolist() == [2] * 4


def test_values_of_a_kernel_do_not_outlive_it():
    kept = []

    class Keeper:
        def keep(self, value):
            self.value = value
            kept.append(self)

    keeper = Keeper()

    @T.prim_func
    def first(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=4):
            for i in T.Parallel(4):
                keeper.keep(A[i] + 1)
                A[i] = keeper.value

    a = np.zeros(4, np.float32)
    tilewright.compile(first)(a)
    np.testing.assert_array_equal(a, np.ones(4))
    with pytest.raises(tilewright.StagingError, match="a value of another kernel"):

        @T.prim_func
        def second(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=4):
                A[0] = keeper.value


def test_interrupts_end_a_compilation(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        """
import time
import tilewright
import tilewright.language as T

def slow():
    print("started", flush=True)
    time.sleep(0.2)
    return 0

try:
    @T.prim_func
    def kernel(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=4):
"""
        # Twenty seconds of them, of which few are waited for.
        + "            x = slow()\n" * 100
        + """
except KeyboardInterrupt:
    print("interrupted")
"""
    )
    # What runs in the background of a shell is started with the signal ignored.
    listen = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, text=True, preexec_fn=listen)
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out.splitlines()[-1] == "interrupted", out
    assert out.count("started") < 50, out


def test_threads_record_and_run_at_once():
    results, errors, kernels = {}, [], []

    def work(n):
        try:
            a = np.full(n, n, np.float32)
            results[n] = add(n)(a, a)
            kernels.append(add(19))
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(20, 28)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for n, result in results.items():
        np.testing.assert_array_equal(result, np.full(n, 2 * n))
    assert len(results) == 8
    assert len(set(map(id, kernels))) == 1


def test_python_runs_while_a_kernel_is_computed():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    a = np.zeros(200_000, np.float32)
    start = time.monotonic()
    add(200_000)(a, a)
    took = time.monotonic() - start
    stop.set()
    thread.join()
    during = [t for t in ticks if start <= t <= start + took]
    assert len(during) > 2
