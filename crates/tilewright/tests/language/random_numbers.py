import tilelang.language as T
@T.prim_func
def main(O: T.Tensor((2, 32, 6), "uint32"), P: T.Tensor((2, 32), "float32")):
    with T.Kernel(2, threads=32) as bx:
        tx = T.get_thread_binding()
        T.rng_init(42, off=bx)
        for i in T.serial(6):
            O[bx, tx, i] = T.rng_rand()
        P[bx, tx] = T.rng_rand_float()
