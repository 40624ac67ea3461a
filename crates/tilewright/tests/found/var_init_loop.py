# A variable's initial value.
import tilelang.language as T


@T.prim_func
def main():
    with T.Kernel(1, 1, threads=64) as (bx, by):
        tx = T.get_thread_binding()
        s3 = T.alloc_shared((1,), "int32")
        s5 = T.alloc_shared((64,), "int32")
        for i2 in T.serial(2):
            T.fill(s3, 4)
            s5[tx] = 1
            v6 = T.alloc_var("int32", init=T.int8(2))
            v6 = s5[1]
            v8 = T.alloc_var("int32", init=s3[0])
