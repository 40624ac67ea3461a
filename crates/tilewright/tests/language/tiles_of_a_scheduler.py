import tilelang.language as T
@T.prim_func
def main(O: T.Tensor((80, 48), "int32"), P: T.Tensor((80, 48), "int32")):
    with T.Kernel(3, threads=64) as bx:
        tiles = T.PersistentTileScheduler("tiles", 5, 3, 3, swizzle_size=2)
        tiles.init(bx)
        while tiles.valid():
            m, n = tiles.m_idx[0], tiles.n_idx[0]
            for i, j in T.Parallel(16, 16):
                O[m * 16 + i, n * 16 + j] = tiles.current_iter[0] * 3 + bx
            tiles.next_tile()
        rows = T.PersistentTileScheduler("rows", 5, 3, 3, column_major=False, stateful=False)
        for w in T.serial(5):
            m, n = rows.coord(w * 3 + bx)
            for i, j in T.Parallel(16, 16):
                P[m * 16 + i, n * 16 + j] = w * 3 + bx
