"""Matrix multiplication with a hand-written producer and consumer: C = A @ B.

    A is (M, K), B is (K, N), C is (M, N).

The block has two warp groups. Group 1 only copies from global memory, group 0 only multiplies. Two
shared-memory slots go round between them: the producer fills a slot once the consumer has emptied
it, and two mbarriers for each slot carry the news.

  full[s]   completes when the producer's 128 threads have copied both tiles and arrived
  empty[s]  completes when the consumer's 128 threads have finished reading the slot

Slot s is used for the K tiles s, s + stages, s + 2 * stages and so on, so the phase of a wait is the
number of earlier uses modulo 2. A fresh barrier counts as having completed phase 1, so the producer's
first waits pass at once.

    tilewright run examples/warp_specialized_gemm.py
    tilewright run examples/warp_specialized_gemm.py --set M=100 --set N=90 --set K=70
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul_warp_specialized(
    M=256,
    N=256,
    K=256,
    block_M=128,
    block_N=64,
    block_K=32,
    dtype="float16",
    accum_dtype="float32",
):
    stages = 2
    k_tiles = T.ceildiv(K, block_K)

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
            A_shared = T.alloc_shared((stages, block_M, block_K), dtype)
            B_shared = T.alloc_shared((stages, block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            full = T.alloc_barrier([128] * stages)
            empty = T.alloc_barrier([128] * stages)

            T.no_set_max_nreg()

            with T.ws(1):
                for k in T.serial(k_tiles):
                    slot = k % stages
                    T.mbarrier_wait_parity(empty[slot], (k // stages + 1) % 2)
                    T.copy(
                        A[by * block_M : (by + 1) * block_M, k * block_K : (k + 1) * block_K],
                        A_shared[slot, :, :],
                    )
                    T.copy(
                        B[k * block_K : (k + 1) * block_K, bx * block_N : (bx + 1) * block_N],
                        B_shared[slot, :, :],
                    )
                    T.mbarrier_arrive(full[slot])

            with T.ws(0):
                T.clear(C_local)
                for k in T.serial(k_tiles):
                    slot = k % stages
                    T.mbarrier_wait_parity(full[slot], (k // stages) % 2)
                    T.gemm(A_shared[slot, :, :], B_shared[slot, :, :], C_local)
                    T.mbarrier_arrive(empty[slot])
                T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


def main():
    import torch

    a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    b = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    kernel = matmul_warp_specialized(4096, 4096, 4096, 128, 256, 64)
    torch.testing.assert_close(kernel(a, b), a @ b, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
