# prints 16383 lines, loses 257
import tilelang.language as T
@T.prim_func
def main(O: T.Tensor((64,), "int32")):
    with T.Kernel(4, threads=64) as bx:
        tx = T.get_thread_binding()
        for i in T.serial(65):
            T.print(i)
        if bx == 0:
            O[tx] = tx
