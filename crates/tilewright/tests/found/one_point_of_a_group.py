# One point of the second warp group.
import tilelang.language as T
@T.prim_func
def main():
    with T.Kernel(1, threads=256) as bx:
        s20 = T.alloc_shared((1, 1), "int32")
        with T.ws(1):
            for i14 in T.Parallel(1):
                s20[0, 0] = T.float16(0)
