# One point, run by one thread, under a condition on a variable: nobody else meets it.
import tilelang
import tilelang.language as T


@T.prim_func
def main(B: T.Tensor((1,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        v = T.alloc_var("int32", init=-7)
        s = T.alloc_shared((1,), "int32")
        for i in T.Parallel(1):
            s[0] = 1
            if 1 != v + T.float16(7):
                s[0] = s[0] + 1
        T.copy(s, B)
