"""Triton kernels of the workloads that `gpu-hopper` times, to stand beside ours: what a user who writes
Triton would write, with a few configurations to choose from. Not part of Tilewright.

Products load tiles through tensor descriptors, by persistent programs that walk the tiles in groups of
rows; attention keeps its running maximum in base two.
"""

import torch
import triton
import triton.language as tl


def _descriptors(size, align, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)


triton.set_allocator(_descriptors)


def _products(tiles):
    make = lambda m, n, k, stages, warps: triton.Config(
        dict(BM=m, BN=n, BK=k, GROUP=8), num_stages=stages, num_warps=warps
    )
    return [make(*tile) for tile in tiles]


@triton.autotune(
    configs=_products(
        [(128, 256, 64, 3, 8), (128, 256, 64, 4, 8), (128, 128, 64, 4, 4), (128, 128, 64, 4, 8), (64, 128, 64, 6, 4), (64, 64, 128, 5, 4)]
    ),
    key=["M", "N", "K"],
)
@triton.jit
def _product_bf16(a, b, c, M, N, K, SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    _walk(a, b, c, M, N, K, SMS, BM, BN, BK, GROUP)


@triton.autotune(
    configs=_products([(128, 256, 128, 3, 8), (128, 256, 128, 4, 8), (128, 128, 128, 4, 4), (128, 128, 128, 4, 8)]),
    key=["M", "N", "K"],
)
@triton.jit
def _product_fp8(a, b, c, M, N, K, SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    _walk(a, b, c, M, N, K, SMS, BM, BN, BK, GROUP)


@triton.jit
def _walk(a, b, c, M, N, K, SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    a_tiles = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b_tiles = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c_tiles = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), rows * columns, SMS, flatten=True):
        first = tile // (GROUP * columns) * GROUP
        height = min(rows - first, GROUP)
        row = (first + tile % (GROUP * columns) % height) * BM
        column = tile % (GROUP * columns) // height * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            left = a_tiles.load([row, k * BK])
            right = b_tiles.load([column, k * BK])
            total = tl.dot(left, right.T, total)
        c_tiles.store([row, column], total.to(tl.bfloat16))


def product(a, b):
    """a @ b.T, as bfloat16; a and b are bfloat16 or float8_e4m3fn."""
    (m, k), n = a.shape, b.shape[0]
    if (k * a.element_size()) % 16 or (n * 2) % 16:
        raise RuntimeError("tensor descriptors need rows of 16 bytes")
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    kernel = _product_bf16 if a.dtype == torch.bfloat16 else _product_fp8
    grid = lambda meta: (min(sms, triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"])),)
    return lambda: kernel[grid](a, b, c, m, n, k, SMS=sms), c


@triton.autotune(
    configs=[
        triton.Config(dict(BM=bm, BN=bn), num_stages=stages, num_warps=warps)
        for bm, bn, stages, warps in [(128, 64, 3, 4), (128, 64, 3, 8), (128, 128, 2, 8), (128, 128, 3, 8), (64, 64, 3, 4)]
    ],
    key=["LENGTH", "CAUSAL"],
)
@triton.jit
def _attention(q, k, v, o, scale, LENGTH: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * LENGTH * D
    rows = block * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    query = tl.load(q + base + rows[:, None] * D + inner[None, :])
    most = tl.full((BM,), float("-inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    whole = block * BM if CAUSAL else LENGTH
    for start in range(0, whole, BN):
        columns = start + tl.arange(0, BN)
        keys = tl.load(k + base + columns[None, :] * D + inner[:, None])
        score = tl.dot(query, keys) * scale
        new = tl.maximum(most, tl.max(score, 1))
        share = tl.exp2(score - new[:, None])
        keep = tl.exp2(most - new)
        values = tl.load(v + base + columns[:, None] * D + inner[None, :])
        total = tl.dot(share.to(tl.float16), values, total * keep[:, None])
        weight = weight * keep + tl.sum(share, 1)
        most = new
    if CAUSAL:
        for start in range(block * BM, block * BM + BM, BN):
            columns = start + tl.arange(0, BN)
            keys = tl.load(k + base + columns[None, :] * D + inner[:, None])
            score = tl.where(rows[:, None] >= columns[None, :], tl.dot(query, keys) * scale, float("-inf"))
            new = tl.maximum(most, tl.max(score, 1))
            share = tl.exp2(score - new[:, None])
            keep = tl.exp2(most - new)
            values = tl.load(v + base + columns[:, None] * D + inner[None, :])
            total = tl.dot(share.to(tl.float16), values, total * keep[:, None])
            weight = weight * keep + tl.sum(share, 1)
            most = new
    tl.store(o + base + rows[:, None] * D + inner[None, :], (total / weight[:, None]).to(tl.float16))


def attention(q, k, v, causal):
    batch, heads, length, d = q.shape
    o = torch.empty_like(q)
    grid = lambda meta: (length // meta["BM"], batch * heads)
    scale = d**-0.5 * 1.4426950408889634
    return lambda: _attention[grid](q, k, v, o, scale, LENGTH=length, D=d, CAUSAL=causal), o


@triton.jit
def _rms_norm(x, w, y, N: tl.constexpr, EPS: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    value = tl.load(x + at).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / N + EPS)
    tl.store(y + at, (value * scale * tl.load(w + tl.arange(0, N)).to(tl.float32)).to(tl.float16))


def rms_norm(x, w):
    y = torch.empty_like(x)
    return lambda: _rms_norm[(x.shape[0],)](x, w, y, N=x.shape[1], EPS=1e-6, num_warps=8), y


@triton.jit
def _softmax(x, y, N: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    value = tl.load(x + at).to(tl.float32)
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + at, (power / tl.sum(power, 0)).to(tl.float16))


def softmax(x):
    y = torch.empty_like(x)
    return lambda: _softmax[(x.shape[0],)](x, y, N=x.shape[1], num_warps=8), y
