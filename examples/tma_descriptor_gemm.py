"""Matrix multiplication for Hopper by descriptors that the program makes: C = A @ B.

    A is (M, K), B is (K, N), C is (M, N); rows are multiples of 16 bytes.

The kernel of `warp_specialized_tma_gemm.py` a level lower: one thread has the copy engine (TMA) move
boxes by `T.tma_load` and `T.tma_store`, and the program counts the bytes.

  full[s]   completes when one thread has arrived, having announced the bytes of both tiles, and
            these have landed
  empty[s]  completes when the consumers' 256 threads have arrived

A descriptor says what the tensor's parameter says, innermost dimension first, and the box that a
copy moves; Tilewright holds it against the parameter. Boxes are 64 columns of 128 bytes wide, so a
tile of B and one of C are two of them side by side.

    tilewright verify examples/tma_descriptor_gemm.py --target sm_90a
    tilewright compile examples/tma_descriptor_gemm.py --target sm_90a --emit source
"""

import tilelang
import tilelang.language as T

FLOAT16 = 6  # CU_TENSOR_MAP_DATA_TYPE_FLOAT16
SWIZZLE_128B = 3
L2_256B = 3


@tilelang.jit(out_idx=[-1])
def matmul_descriptors(
    M=256,
    N=256,
    K=512,
    block_M=128,
    block_N=128,
    block_K=64,
    stages=4,
    dtype="float16",
    accum_dtype="float32",
):
    k_tiles = T.ceildiv(K, block_K)
    box = 64
    tile_bytes = (block_M + block_N) * block_K * 2
    modes = (0, SWIZZLE_128B, L2_256B, 0)

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=384) as (bx, by):
            A_shared = T.alloc_shared((stages, block_M, block_K), dtype)
            B_shared = T.alloc_shared((stages, block_K, block_N), dtype)
            C_shared = T.alloc_shared((block_M, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            full = T.alloc_barrier([1] * stages)
            empty = T.alloc_barrier([256] * stages)
            tx = T.get_thread_binding()

            # Type and rank, address, extents, strides in bytes, box, element strides, modes.
            A_desc = T.create_tma_descriptor(FLOAT16, 2, A.data, K, M, 2, K * 2, block_K, block_M, 1, 1, *modes)
            B_desc = T.create_tma_descriptor(FLOAT16, 2, B.data, N, K, 2, N * 2, box, block_K, 1, 1, *modes)
            C_desc = T.create_tma_descriptor(FLOAT16, 2, C.data, N, M, 2, N * 2, box, block_M, 1, 1, *modes)

            with T.ws(2):
                T.set_max_nreg(24, 0)
                if tx == 256:
                    for k in T.serial(k_tiles):
                        slot = k % stages
                        T.mbarrier_wait_parity(empty[slot], (k // stages + 1) % 2)
                        T.mbarrier_arrive_expect_tx(full[slot], tile_bytes)
                        T.tma_load(
                            A_desc,
                            full[slot],
                            T.access_ptr(A_shared[slot, 0, 0], "w"),
                            k * block_K,
                            by * block_M,
                        )
                        for p in T.unroll(block_N // box):
                            T.tma_load(
                                B_desc,
                                full[slot],
                                T.access_ptr(B_shared[slot, 0, p * box], "w"),
                                bx * block_N + p * box,
                                k * block_K,
                            )

            with T.ws(0, 1):
                T.set_max_nreg(240, 1)
                T.clear(C_local)
                for k in T.serial(k_tiles):
                    slot = k % stages
                    T.mbarrier_wait_parity(full[slot], (k // stages) % 2)
                    T.wgmma_gemm(A_shared[slot, :, :], B_shared[slot, :, :], C_local)
                    T.warpgroup_wait(1)
                    if k > 0:
                        T.mbarrier_arrive(empty[(k - 1) % stages])
                T.warpgroup_wait(0)
                T.copy(C_local, C_shared)
                if tx == 0:
                    for p in T.unroll(block_N // box):
                        T.tma_store(
                            C_desc,
                            T.access_ptr(C_shared[0, p * box], "r"),
                            bx * block_N + p * box,
                            by * block_M,
                        )
                    T.tma_store_arrive()
                    T.tma_store_wait(0)

    return gemm


def main():
    import torch

    a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    b = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    kernel = matmul_descriptors(4096, 4096, 4096, 128, 256, 64, stages=3)
    torch.testing.assert_close(kernel(a, b), a @ b, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
