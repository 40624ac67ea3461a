# A variable's initial value.
import tilelang.language as T


@T.prim_func
def main():
    with T.Kernel(1, 1, threads=32) as (bx, by):
        for i9 in T.Pipelined(1, num_stages=1):
            v13 = T.alloc_var("int32", init=1)
            while (0 < v13):
                v13 = 0
