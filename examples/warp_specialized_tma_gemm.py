"""Matrix multiplication for Hopper with every copy, product and wait written by hand: C = A @ B.

    A is (M, K), B is (K, N), C is (M, N); rows are multiples of 16 bytes.

The block has three warp groups. Group 2 has the copy engine (TMA) bring tiles of A and B, groups 0
and 1 multiply them on the tensor cores (wgmma) and have the engine take the result out.

  full[s]   completes when the bytes of both tiles have landed and the producer's 128 threads have
            arrived: `T.tma_copy` announces its bytes itself, one thread of the group does it
  empty[s]  completes when the consumers' 256 threads have arrived, each after the products that
            read the slot are done

A product runs while the next one is issued: `T.warpgroup_wait(1)` leaves the newest in flight, so
the slot that is handed back is that of the iteration before.

    tilewright verify examples/warp_specialized_tma_gemm.py --target sm_90a
    tilewright compile examples/warp_specialized_tma_gemm.py --target sm_90a --emit source
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul_tma(
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
            full = T.alloc_barrier([128] * stages)
            empty = T.alloc_barrier([256] * stages)

            with T.ws(2):
                T.set_max_nreg(24, 0)
                for k in T.serial(k_tiles):
                    slot = k % stages
                    T.mbarrier_wait_parity(empty[slot], (k // stages + 1) % 2)
                    T.tma_copy(A[by * block_M, k * block_K], A_shared[slot, :, :], barrier=full[slot])
                    T.tma_copy(B[k * block_K, bx * block_N], B_shared[slot, :, :], barrier=full[slot])
                    T.mbarrier_arrive(full[slot])

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
                T.tma_copy(C_shared, C[by * block_M, bx * block_N])
                T.tma_store_arrive()
                T.tma_store_wait(0)

    return gemm


def main():
    import torch

    a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    b = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    kernel = matmul_tma(4096, 4096, 4096, 128, 256, 64, stages=3)
    torch.testing.assert_close(kernel(a, b), a @ b, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
