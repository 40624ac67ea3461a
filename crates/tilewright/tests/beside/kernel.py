import tilelang
import tilelang.language as T
from near import scaled
from pkg.inner import steps

@tilelang.jit
def make(n=64):
    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(steps, threads=32):
            for i in T.Parallel(n):
                C[i] = scaled(A[i]) - 2.0 * A[i]
    return kernel
