"""`@autotune` on machines without a GPU: what is chosen, what is reported, what is kept."""

import concurrent.futures
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import tilewright
import tilewright.language as T


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def gemm(configs, **options):
    @tilewright.autotune(configs=configs, on="cost", **options)
    @tilewright.jit(out_idx=[-1], target="sm_80")
    def gemm(M, N, K, block=None, threads=128, wrong=0):
        @T.prim_func
        def kernel(
            A: T.Tensor((M, K), "float16"),
            B: T.Tensor((K, N), "float16"),
            C: T.Tensor((M, N), "float32"),
        ):
            with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=threads) as (bx, by):
                a = T.alloc_shared((block, 32), "float16")
                b = T.alloc_shared((32, block), "float16")
                c = T.alloc_fragment((block, block), "float32")
                T.clear(c)
                for k in T.Pipelined(K // 32 - wrong, num_stages=2):
                    T.copy(A[by * block, k * 32], a)
                    T.copy(B[k * 32, bx * block], b)
                    T.gemm(a, b, c)
                T.copy(c, C[by * block, bx * block])

        return kernel

    return gemm


CONFIGS = [
    dict(block=16),
    dict(block=64),
    dict(block=4096),
    dict(block=32, wrong=1),
    dict(block=32),
    dict(block=0),
]


def test_broken_and_wrong_configurations_are_reported_and_not_chosen():
    kernel = gemm(CONFIGS)(64, 64, 64)
    assert kernel.config in [CONFIGS[0], CONFIGS[1], CONFIGS[4]]
    rows = kernel.tuning.rows
    assert "shared" in rows[2]["failed"]
    assert rows[3]["failed"].startswith("its result differs from those of 3 other configurations")
    assert rows[5]["failed"]
    assert kernel.tuning.unit == "cycles" and kernel.latency is None
    table = str(kernel.tuning)
    assert table.splitlines()[1].startswith("* ") and "block=4096" in table
    a, b = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16)
    np.testing.assert_array_equal(kernel(a, b), np.full((64, 64), 64, np.float32))


def test_a_reference_program_decides():
    pair = [dict(block=32, wrong=1), dict(block=32)]
    with pytest.raises(tilewright.TilewrightError, match="a reference program would say"):
        gemm(pair)(64, 64, 64)

    def reference(a, b):
        return a.astype(np.float32) @ b.astype(np.float32)

    kernel = gemm(pair, ref_prog=reference)(64, 64, 64)
    assert kernel.config == dict(block=32)
    assert "differs from the program's" in kernel.tuning.rows[0]["failed"]

    def strict(found, expected):
        assert len(found) == 1
        np.testing.assert_array_equal(found[0], expected[0])

    def small_integers(params):
        # Sums of these are the same in every order, whatever this machine's BLAS does.
        rng = np.random.default_rng(1)
        return [rng.integers(-4, 5, (64, 64)).astype(np.float16) for _ in range(2)]

    exactly = dict(ref_prog=reference, manual_check_prog=strict, supply_prog=small_integers)
    kernel = gemm(pair, **exactly)(64, 64, 64)
    assert kernel.config == dict(block=32) and "AssertionError" in kernel.tuning.rows[0]["failed"]
    # The other way round the other is right.
    half = gemm(pair, ref_prog=lambda a, b: reference(a[:, :32], b[:32]))(64, 64, 64)
    assert half.config == pair[0]


def test_results_are_kept_and_never_for_others(cache):
    first = gemm(CONFIGS[:2])(64, 64, 64)
    assert not first.tuning.stored
    again = gemm(CONFIGS[:2])(64, 64, 64)
    assert again.tuning.stored and again.config == first.config
    assert again.tuning.time == first.tuning.time
    assert not gemm(CONFIGS[:2])(64, 64, 96).tuning.stored
    assert not gemm([CONFIGS[0], CONFIGS[4]])(64, 64, 64).tuning.stored
    assert not gemm(CONFIGS[:2], use_cache=False)(64, 64, 64).tuning.stored


def test_an_executor_measures(tmp_path):
    """One worker of the pool does all of it, in a cache of its own."""
    there = tmp_path / "there"
    context = multiprocessing.get_context("spawn")
    options = dict(mp_context=context, initializer=os.putenv)
    options["initargs"] = ("TILEWRIGHT_CACHE_DIR", str(there))
    with concurrent.futures.ProcessPoolExecutor(1, **options) as pool:
        found = gemm(CONFIGS, executor=pool)(64, 64, 64)
        assert any(there.rglob("*")), "nothing was done there"
        again = gemm(CONFIGS, executor=pool)(64, 64, 64)
        assert again.tuning.stored and again.config == found.config

        def reference(a, b):
            return a.astype(np.float32) @ b.astype(np.float32)

        pair = [dict(block=32, wrong=1), dict(block=32)]
        judged = gemm(pair, executor=pool, ref_prog=reference)(64, 64, 64)
        assert judged.config == pair[1]
        assert "differs from the program's" in judged.tuning.rows[0]["failed"]
        with pytest.raises(tilewright.TilewrightError, match="no configuration of `gemm`"):
            gemm([dict(block=4096), dict(block=8192)], executor=pool)(64, 64, 64)
    here = gemm(CONFIGS)(64, 64, 64)
    assert not here.tuning.stored
    assert (found.config, found.tuning.time) == (here.config, here.tuning.time)
    assert [bool(row["failed"]) for row in found.tuning.rows] == [
        bool(row["failed"]) for row in here.tuning.rows
    ]


def test_executors_that_fail():
    with pytest.raises(TypeError, match="`executor` is a `concurrent.futures.Executor`, not a int"):
        gemm(CONFIGS, executor=4)

    class Refuses(concurrent.futures.Executor):
        def submit(self, function, *args):
            raise pickle.PicklingError("cannot pickle this")

    class Loses(concurrent.futures.Executor):
        def submit(self, function, *args):
            job = concurrent.futures.Future()
            job.set_exception(concurrent.futures.BrokenExecutor("a worker died"))
            return job

    for executor, why in [(Refuses(), "cannot pickle this"), (Loses(), "a worker died")]:
        with pytest.raises(tilewright.KernelError, match=why) as caught:
            gemm(CONFIGS[:2], executor=executor)(64, 64, 64)
        assert caught.value.code == "tune-executor" and len(caught.value.help) == 2


def test_a_call_that_gives_everything_is_not_tuned():
    kernel = gemm([dict(block=16), dict(block=64)])(64, 64, 64, block=32)
    assert not hasattr(kernel, "tuning") and "grid(bx: 2, by: 2)" in kernel.script()


def test_the_same_call_is_tuned_once():
    calls = []

    def configs():
        calls.append(1)
        return [dict(block=16), dict(block=64)]

    tuned = gemm(configs)
    assert tuned(64, 64, 64) is tuned(64, 64, 64)
    results = []
    threads = [threading.Thread(target=lambda: results.append(tuned(32, 32, 32))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(kernel) for kernel in results}) == 1 and len(results) == 8


def test_auto_tries_what_names_allow():
    kernel = gemm("auto")(64, 64, 64, threads=128)
    assert set(kernel.config) == {"block"} and kernel.config["block"] in (32, 64, 128, 256)
    assert len(kernel.tuning.rows) == 4
    with pytest.raises(ValueError, match="a function, or \"auto\""):
        gemm("all")(64, 64, 64)

    @tilewright.autotune(configs="auto")
    @tilewright.jit
    def nameless(x):
        return None

    with pytest.raises(ValueError, match="list the configurations"):
        nameless(3)


def test_eager_kernels_are_tuned_by_their_tensors():
    @tilewright.autotune(configs=[dict(block=32), dict(block=128)], on="cost")
    @tilewright.jit
    def doubled(X, block: int = 64):
        N = T.const("N")
        X: T.Tensor[[N], T.float32]
        Y = T.empty([N], T.float32)
        with T.Kernel(T.ceildiv(N, block), threads=block) as b:
            for i in T.Parallel(block):
                Y[b * block + i] = X[b * block + i] * 2
        return Y

    x = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(doubled(x), x * 2)
    kernel = doubled.compile(x)
    assert kernel.config["block"] in (32, 128)


def test_sizes_of_the_call_come_from_the_supplied_tensors():
    n = T.dynamic("n")

    @tilewright.autotune(
        configs=[dict(block=32), dict(block=64)],
        on="cost",
        supply_prog=lambda params: [np.ones(200, np.float32)],
    )
    @tilewright.jit(out_idx=[-1])
    def plus(block=None):
        @T.prim_func
        def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=block) as b:
                for i in T.Parallel(block):
                    B[b * block + i] = A[b * block + i] + 1

        return kernel

    np.testing.assert_array_equal(plus()(np.zeros(7, np.float32)), np.ones(7))


def test_errors():
    def broken(N, block):
        raise KeyError("the factory's own")

    tuned = tilewright.autotune(configs=[dict(block=1), dict(block=2)])(tilewright.jit(broken))
    with pytest.raises(KeyError, match="the factory's own"):
        tuned(4)
    with pytest.raises(tilewright.TilewrightError, match="no configuration of `gemm` can be used"):
        gemm([dict(block=4096), dict(block=8192)])(64, 64, 64)
    with pytest.raises(TypeError, match="a configuration is a dict"):
        gemm([16, 32])(64, 64, 64)
    with pytest.raises(TypeError, match="no option 'confgs'"):
        tilewright.autotune(confgs=[])
    with pytest.raises(TypeError, match="stands above"):
        tilewright.autotune(configs=[])(lambda: None)
    with pytest.raises(ValueError, match="nothing is timed on .moon."):
        gemm_on_the_moon()


def gemm_on_the_moon():
    tuned = gemm(CONFIGS[:2])
    tuned.options["on"] = "moon"
    tuned(64, 64, 64)


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    place = tmp_path / "file"
    place.write_text("no folder")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(place))
    assert not gemm(CONFIGS[:2])(64, 64, 64).tuning.stored
    assert not gemm(CONFIGS[:2])(64, 64, 64).tuning.stored


def test_processes_that_tune_the_same(cache, tmp_path):
    program = tmp_path / "tuned.py"
    program.write_text(
        """
import numpy as np
import tilelang
import tilelang.language as T

@tilelang.autotune(configs=[dict(block=b) for b in (16, 32, 64)], on="cost")
@tilelang.jit(out_idx=[-1])
def add(N, block=None):
    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=block) as b:
            for i in T.Parallel(block):
                B[b * block + i] = A[b * block + i] + 1
    return kernel

kernel = add(1000)
assert (kernel(np.zeros(1000, np.float32)) == 1).all()
print(kernel.config, kernel.tuning.stored)
"""
    )
    command = [sys.executable, "-m", "tilewright", str(program)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
        for _ in range(8)
    ]
    said = [process.communicate(timeout=300)[0] for process in running]
    assert all(process.returncode == 0 for process in running)
    assert len({text.split("}")[0] for text in said}) == 1
    assert sum("False" in text for text in said) == 1
