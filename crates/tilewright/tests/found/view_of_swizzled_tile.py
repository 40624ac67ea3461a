# A view of a swizzled tile has no elements side by side.
import tilelang
import tilelang.language as T


@T.prim_func
def main():
    with T.Kernel(1, threads=32) as bx:
        s1 = T.alloc_shared((33, 100), "float32")
        T.annotate_layout({s1: tilelang.layout.make_swizzled_layout(s1)})
        for i0, i1 in T.Parallel(33, 100):
            s1[i0, i1] = 1.0
        s2 = T.reshape(s1, (3300,))
        f15 = T.alloc_fragment((3300,), "float32")
        T.copy(s2, f15)
