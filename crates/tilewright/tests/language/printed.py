# emulated
# prints: thread 5: half 2.5
# prints: thread 37: half 2
# prints: thread 5: half 0.5
# prints: thread 37: half 0
# prints: thread 5: half 1.5
# prints: thread 37: half 1
# prints: thread 5: half 5
# prints: thread 37: half 4.5
# prints: thread 0:  0, 0
# prints: thread 0:  1, 10000000000
# prints: thread 0: f 0, 0
# prints: thread 0: f 1, 0.25
# prints: thread 0: f 2, 0.5
# prints: thread 0: done
# prints: thread 127: done
import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((4, 64), "float16"), O: T.Tensor((4, 64), "int64")):
    with T.Kernel(2, 2, threads=64) as (bx, by):
        tx = T.get_thread_binding()
        x = A[bx * 2 + by, tx]
        if tx % 32 == 5:
            T.print(x * 0.5, msg="half")
        O[bx * 2 + by, tx] = tx - bx
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((2,), "int64")
        f = T.alloc_fragment((3,), "float64")
        for i in T.Parallel(2):
            s[i] = O[1, i] * 10000000000
        for i in T.Parallel(3):
            f[i] = T.cast(i, "float64") / 4
        T.print(s)
        T.print(f, msg="f")
        if T.get_thread_binding() % 127 == 0:
            T.print("done")
