"""Lists and dicts of Python in a kernel's hands: what is done to them is done to them."""

import numpy as np
import tilelang
import tilelang.language as T

LOG = []
SIZES = {"block": 32, "rows": [1, 2, 3]}
SHAPE = [3, 32]


class Stack:
    def __init__(self):
        self.items = []
        self.depth = 0

    def push(self, item):
        self.items.append(item)
        self.depth += 1

    def note(self, text):
        LOG.append(text)


def build(weights):
    stack = Stack()
    buffers = []
    options = dict(threads=SIZES["block"])

    @T.prim_func
    def kernel(A: T.Tensor(SHAPE, "float32"), B: T.Tensor(SHAPE, "float32")):
        with T.Kernel(len(SIZES["rows"]), **options) as row:
            for _ in ("first", "second"):
                buffers.append(T.alloc_fragment([SIZES["block"]], "float32"))
            stack.push(buffers[0])
            stack.push(buffers[-1])
            stack.note("recorded")
            LOG.append(len(buffers))
            weights.extend([10.0])
            stack.depth *= 1
            for j in T.Parallel(SIZES["block"]):
                stack.items[0][j] = A[row, j] * weights[0]
                stack.items[1][j] = stack.items[0][j] + weights[-1]
            for j in T.Parallel(SIZES["block"]):
                B[row, j] = stack.items[stack.depth - 1][j] + sum(SIZES["rows"]) + max(*SIZES["rows"])

    return kernel, stack


def run():
    weights = [2.0]
    kernel, stack = build(weights)
    assert LOG == ["recorded", 2], LOG
    assert weights == [2.0, 10.0]
    assert stack.depth == 2 and len(stack.items) == 2
    a = np.arange(96, dtype=np.float32).reshape(3, 32)
    found = tilelang.compile(kernel, out_idx=[-1])(a)
    np.testing.assert_array_equal(found, a * 2 + 10 + 6 + 3)


run()
print("all close")
