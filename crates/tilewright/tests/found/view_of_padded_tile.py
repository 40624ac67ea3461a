# A view of a tile with padded rows is not row-major.
import tilelang.language as T


@T.prim_func
def main(A0: T.Tensor((40, 8), "int8"), A2: T.Tensor((38, 16), "float32"), A6: T.Tensor((2, 256), "int8"), A10: T.Tensor((2, 256), "bfloat16"), A11: T.Tensor((2, 16, 16), "float32"), A12: T.Tensor((512,), "float32"), A13: T.Tensor((2, 256), "int8"), A14: T.Tensor((2, 16, 16), "float32")):
    with T.Kernel(2, threads=256) as bx:
        tx = T.get_thread_binding()
        s1 = T.alloc_shared((40, 8), "int8")
        T.copy(A0, s1)
        s3 = T.alloc_shared((16, 16), "float32")
        T.annotate_layout({s3: T.Layout((16, 16), lambda i, j: i * 22 + j)})
        T.copy(A2[(bx * 16):(bx * 16) + 16, 0:0 + 16], s3)
        s4 = T.alloc_shared((256,), "int8")
        s4[tx] = s3[(tx % 16), (((tx * 3) + 3) % 16)]
        v5 = T.alloc_var("int8", init=s4[((256 - 1) - tx)])
        for i0 in T.serial(2):
            s4[tx] = T.cast((v5 + i0), "int8")
            v5 = (v5 + s4[(tx ^ 2)])
        A6[bx, tx] = v5
        s7 = T.reshape(s3, (256,))
        f8 = T.alloc_fragment((16, 16), "float32")
        T.copy(s3, f8)
        s9 = T.alloc_shared((256,), "bfloat16")
        for i1 in T.Parallel(256):
            s9[i1] = s4[(255 - bx)]
        for i2 in T.Parallel(256):
            A10[bx, i2] = s9[i2]
        for i3, i4 in T.Parallel(16, 16):
            A11[bx, i3, i4] = (f8[i3, i4] + T.if_then_else((s1[i3, bx] <= s7[i3]), s9[(255 - i4)], s4[(i3 % 256)]))
        T.copy(s7, A12[(bx * 256)])
        T.copy(s4, A13[bx, 0:0 + 256])
        for i5, i6 in T.Parallel(16, 16):
            A14[bx, i5, i6] = s3[i5, i6]
