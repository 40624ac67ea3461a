//! Faults to plant in the kernels of this folder.

/// A piece of a kernel's text that is there once, and what it becomes.
pub struct Fault {
    pub kernel: &'static str,
    pub name: &'static str,
    from: &'static str,
    to: &'static str,
}

impl Fault {
    pub fn planted(&self, text: &str) -> String {
        let Fault {
            kernel, name, from, ..
        } = self;
        assert_eq!(text.matches(from).count(), 1, "{kernel}: {name}");
        text.replacen(from, self.to, 1)
    }
}

const fn fault(
    kernel: &'static str,
    name: &'static str,
    from: &'static str,
    to: &'static str,
) -> Fault {
    Fault {
        kernel,
        name,
        from,
        to,
    }
}

const WAIT_FULL: &str = "T.mbarrier_wait_parity(full[k % stages], (k // stages) % 2)";
const WAIT_EMPTY: &str = "T.mbarrier_wait_parity(empty[k % stages], (k // stages + 1) % 2)";
const ARRIVE_FULL: &str = "T.mbarrier_arrive(full[k % stages])";
const ARRIVE_EMPTY: &str = "T.mbarrier_arrive(empty[k % stages])";
const ARRIVE_BEFORE: &str = "T.mbarrier_arrive(empty[(k - 1) % stages])";
const TO_A: &str = "A_shared[k % stages, :, :], barrier=full[k % stages])";
const TO_B: &str = "B_shared[k % stages, :, :], barrier=full[k % stages])";
const READS: &str = "T.wgmma_gemm(A_shared[k % stages, :, :], B_shared[k % stages, :, :]";
const PASS: &str = "pass";

const BLOCKS_MEET: &str = "            T.cluster_sync()";
const ARRIVE_THERE: &str = "T.mbarrier_arrive(away[k % stages], 0)";

pub const FAULTS: &[Fault] = &[
    // Blocks of a cluster.
    fault(
        "cluster_sync",
        "blocks do not meet",
        BLOCKS_MEET,
        "            pass",
    ),
    fault(
        "cluster_sync",
        "only their threads meet",
        "T.cluster_sync()",
        "T.sync_threads()",
    ),
    fault(
        "cluster_sync",
        "they meet before they read",
        "            for i, j in T.Parallel(64, 64):\n                B[k, bx * 64 + i, j] = S[i, j] + T.Cast(\"float16\", rank)\n            T.cluster_sync()",
        "            T.cluster_sync()\n            for i, j in T.Parallel(64, 64):\n                B[k, bx * 64 + i, j] = S[i, j] + T.Cast(\"float16\", rank)",
    ),
    fault(
        "cluster_sync",
        "only one block announces its bytes",
        "            T.tma_copy(A[k, bx // 2 * 64, 0], S, barrier=full, cluster_mask=0b11)",
        "            if rank == 0:\n                T.tma_copy(A[k, bx // 2 * 64, 0], S, barrier=full, cluster_mask=0b11)",
    ),
    fault(
        "cluster_sync",
        "the block that loads is not there",
        "            T.tma_copy(A[k, bx // 2 * 64, 0], S, barrier=full, cluster_mask=0b11)",
        "            if rank == 1:\n                T.tma_copy(A[k, bx // 2 * 64, 0], S, barrier=full, cluster_mask=0b11)",
    ),
    fault(
        "cluster_sync",
        "one block does not arrive",
        "            T.mbarrier_arrive(full)",
        "            if rank == 0:\n                T.mbarrier_arrive(full)",
    ),
    fault(
        "cluster_halves",
        "it tells that the tile is read before it is",
        "            T.copy(S, F)\n            T.cluster_arrive()",
        "            T.cluster_arrive()\n            T.copy(S, F)",
    ),
    fault(
        "cluster_halves",
        "it waits before it tells",
        "            T.cluster_arrive()\n",
        "            T.cluster_wait()\n            T.cluster_arrive()\n",
    ),
    fault(
        "cluster_halves",
        "it tells twice",
        "            T.cluster_arrive()",
        "            T.cluster_arrive()\n            T.cluster_arrive()",
    ),
    fault(
        "cluster_halves",
        "it tells and meets",
        "            T.cluster_wait()",
        "            T.cluster_sync()",
    ),
    fault(
        "multicast_some",
        "one of the blocks does not wait",
        "        T.mbarrier_wait_parity(full, 0)",
        "        if T.block_rank_in_cluster() != 2:\n            T.mbarrier_wait_parity(full, 0)",
    ),
    fault(
        "multicast_products",
        "the first block is not told",
        ARRIVE_THERE,
        PASS,
    ),
    fault(
        "multicast_products",
        "the second block is told",
        ARRIVE_THERE,
        "T.mbarrier_arrive(away[k % stages], 1)",
    ),
    fault(
        "multicast_products",
        "each block is told by itself",
        ARRIVE_THERE,
        "T.mbarrier_arrive(away[k % stages], rank)",
    ),
    fault(
        "multicast_products",
        "the first block waits for its own consumers alone",
        "                if rank == 0:\n                    T.mbarrier_wait_parity(away[k % stages], (k // stages + 1) % 2)\n",
        "",
    ),
    fault(
        "multicast_products",
        "the other parity of the other block",
        "T.mbarrier_wait_parity(away[k % stages], (k // stages + 1) % 2)",
        "T.mbarrier_wait_parity(away[k % stages], (k // stages) % 2)",
    ),
    fault(
        "multicast_products",
        "the first block is told before the product is done",
        "                T.wait_wgmma(0)\n                T.mbarrier_arrive(empty[k % stages])\n                T.mbarrier_arrive(away[k % stages], 0)",
        "                T.mbarrier_arrive(away[k % stages], 0)\n                T.wait_wgmma(0)\n                T.mbarrier_arrive(empty[k % stages])",
    ),
    fault(
        "multicast_products",
        "each block loads for itself",
        ", cluster_mask=0b11)",
        ", cluster_mask=0b01)",
    ),
    fault(
        "multicast_products",
        "blocks end by themselves",
        "        T.cluster_sync()",
        "        pass",
    ),
    // What the consumers wait for.
    fault("products", "no wait for the tile", WAIT_FULL, PASS),
    fault(
        "products",
        "the other parity",
        WAIT_FULL,
        "T.mbarrier_wait_parity(full[k % stages], (k // stages + 1) % 2)",
    ),
    fault(
        "products",
        "always parity 0",
        WAIT_FULL,
        "T.mbarrier_wait_parity(full[k % stages], 0)",
    ),
    fault(
        "products",
        "always parity 1",
        WAIT_FULL,
        "T.mbarrier_wait_parity(full[k % stages], 1)",
    ),
    fault(
        "products",
        "a parity that turns each time",
        WAIT_FULL,
        "T.mbarrier_wait_parity(full[k % stages], k % 2)",
    ),
    fault(
        "products",
        "a parity of another number of stages",
        WAIT_FULL,
        "T.mbarrier_wait_parity(full[k % stages], (k // 2) % 2)",
    ),
    fault(
        "products",
        "the next barrier",
        WAIT_FULL,
        "T.mbarrier_wait_parity(full[(k + 1) % stages], (k // stages) % 2)",
    ),
    fault(
        "products",
        "the barrier before",
        WAIT_FULL,
        "T.mbarrier_wait_parity(full[(k + 2) % stages], (k // stages) % 2)",
    ),
    fault(
        "products",
        "always the first barrier",
        WAIT_FULL,
        "T.mbarrier_wait_parity(full[0], (k // stages) % 2)",
    ),
    fault(
        "products",
        "the producer's barrier",
        WAIT_FULL,
        "T.mbarrier_wait_parity(empty[k % stages], (k // stages) % 2)",
    ),
    // The products.
    fault(
        "products",
        "no wait for the product",
        "T.wait_wgmma(0)",
        PASS,
    ),
    fault(
        "products",
        "one product in flight",
        "T.wait_wgmma(0)",
        "T.wait_wgmma(1)",
    ),
    fault(
        "products",
        "waits before the product",
        "T.wgmma_gemm(A_shared[k % stages, :, :], B_shared[k % stages, :, :], C_local)\n                    T.wait_wgmma(0)",
        "T.wait_wgmma(0)\n                    T.wgmma_gemm(A_shared[k % stages, :, :], B_shared[k % stages, :, :], C_local)",
    ),
    fault(
        "products",
        "reads the next tile of A",
        READS,
        "T.wgmma_gemm(A_shared[(k + 1) % stages, :, :], B_shared[k % stages, :, :]",
    ),
    fault(
        "products",
        "reads the next tile of B",
        READS,
        "T.wgmma_gemm(A_shared[k % stages, :, :], B_shared[(k + 1) % stages, :, :]",
    ),
    fault(
        "products",
        "reads one tile of A",
        READS,
        "T.wgmma_gemm(A_shared[0, :, :], B_shared[k % stages, :, :]",
    ),
    // What the consumers tell.
    fault("products", "consumers never arrive", ARRIVE_EMPTY, PASS),
    fault(
        "products",
        "consumers arrive twice",
        ARRIVE_EMPTY,
        "T.mbarrier_arrive(empty[k % stages])\n                    T.mbarrier_arrive(empty[k % stages])",
    ),
    fault(
        "products",
        "consumers arrive at the next",
        ARRIVE_EMPTY,
        "T.mbarrier_arrive(empty[(k + 1) % stages])",
    ),
    fault(
        "products",
        "consumers arrive at their own barrier",
        ARRIVE_EMPTY,
        "T.mbarrier_arrive(full[k % stages])",
    ),
    fault(
        "products",
        "consumers arrive in some iterations",
        ARRIVE_EMPTY,
        "if k != 2:\n                        T.mbarrier_arrive(empty[k % stages])",
    ),
    fault(
        "products",
        "consumers arrive before they wait",
        WAIT_FULL,
        "T.mbarrier_arrive(empty[k % stages])\n                    T.mbarrier_wait_parity(full[k % stages], (k // stages) % 2)",
    ),
    // The counts.
    fault(
        "products",
        "empty counts one group",
        "T.alloc_barrier([256] * stages)",
        "T.alloc_barrier([128] * stages)",
    ),
    fault(
        "products",
        "empty counts warps",
        "T.alloc_barrier([256] * stages)",
        "T.alloc_barrier([8] * stages)",
    ),
    fault(
        "products",
        "empty counts one too many",
        "T.alloc_barrier([256] * stages)",
        "T.alloc_barrier([257] * stages)",
    ),
    fault(
        "products",
        "empty counts one too few",
        "T.alloc_barrier([256] * stages)",
        "T.alloc_barrier([255] * stages)",
    ),
    fault(
        "products",
        "one empty barrier counts wrong",
        "T.alloc_barrier([256] * stages)",
        "T.alloc_barrier([256, 256, 384])",
    ),
    fault(
        "products",
        "full counts one thread",
        "T.alloc_barrier([128] * stages)",
        "T.alloc_barrier([1] * stages)",
    ),
    fault(
        "products",
        "full counts one too many",
        "T.alloc_barrier([128] * stages)",
        "T.alloc_barrier([129] * stages)",
    ),
    fault(
        "products",
        "full counts one too few",
        "T.alloc_barrier([128] * stages)",
        "T.alloc_barrier([127] * stages)",
    ),
    // What the producer waits for.
    fault("products", "no wait for room", WAIT_EMPTY, PASS),
    fault(
        "products",
        "room of the other parity",
        WAIT_EMPTY,
        "T.mbarrier_wait_parity(empty[k % stages], (k // stages) % 2)",
    ),
    fault(
        "products",
        "room always of parity 1",
        WAIT_EMPTY,
        "T.mbarrier_wait_parity(empty[k % stages], 1)",
    ),
    fault(
        "products",
        "room always of parity 0",
        WAIT_EMPTY,
        "T.mbarrier_wait_parity(empty[k % stages], 0)",
    ),
    fault(
        "products",
        "room in the next tile",
        WAIT_EMPTY,
        "T.mbarrier_wait_parity(empty[(k + 1) % stages], (k // stages + 1) % 2)",
    ),
    fault(
        "products",
        "room in the first round only",
        WAIT_EMPTY,
        "if k < 3:\n                        T.mbarrier_wait_parity(empty[k % stages], (k // stages + 1) % 2)",
    ),
    fault(
        "products",
        "waits for its own barrier",
        WAIT_EMPTY,
        "T.mbarrier_wait_parity(full[k % stages], (k // stages + 1) % 2)",
    ),
    // What it announces, and tells.
    fault("products", "producer never arrives", ARRIVE_FULL, PASS),
    fault(
        "products",
        "producer arrives twice",
        ARRIVE_FULL,
        "T.mbarrier_arrive(full[k % stages])\n                    T.mbarrier_arrive(full[k % stages])",
    ),
    fault(
        "products",
        "producer arrives at the next",
        ARRIVE_FULL,
        "T.mbarrier_arrive(full[(k + 1) % stages])",
    ),
    fault(
        "products",
        "producer announces more",
        ARRIVE_FULL,
        "T.mbarrier_arrive_expect_tx(full[k % stages], 16)",
    ),
    fault(
        "products",
        "producer announces bytes by all threads",
        ARRIVE_FULL,
        "T.mbarrier_expect_tx(full[k % stages], 32768)\n                    T.mbarrier_arrive(full[k % stages])",
    ),
    fault(
        "products",
        "producer announces to the next",
        ARRIVE_FULL,
        "T.mbarrier_expect_tx(full[(k + 1) % stages], 128)\n                    T.mbarrier_arrive(full[k % stages])",
    ),
    fault(
        "products",
        "producer arrives in some iterations",
        ARRIVE_FULL,
        "if k != 3:\n                        T.mbarrier_arrive(full[k % stages])",
    ),
    // What it loads.
    fault(
        "products",
        "A into the next tile",
        TO_A,
        "A_shared[(k + 1) % stages, :, :], barrier=full[k % stages])",
    ),
    fault(
        "products",
        "A into one tile",
        TO_A,
        "A_shared[0, :, :], barrier=full[k % stages])",
    ),
    fault(
        "products",
        "A tells the next barrier",
        TO_A,
        "A_shared[k % stages, :, :], barrier=full[(k + 1) % stages])",
    ),
    fault(
        "products",
        "A tells the consumers' barrier",
        TO_A,
        "A_shared[k % stages, :, :], barrier=empty[k % stages])",
    ),
    fault(
        "products",
        "B into the next tile",
        TO_B,
        "B_shared[(k + 1) % stages, :, :], barrier=full[k % stages])",
    ),
    fault(
        "products",
        "B tells one barrier",
        TO_B,
        "B_shared[k % stages, :, :], barrier=full[0])",
    ),
    // Roles.
    fault(
        "products",
        "nobody produces",
        "with T.ws(2):",
        "with T.ws(1):",
    ),
    fault(
        "products",
        "one group consumes",
        "with T.ws(0, 1):",
        "with T.ws(0):",
    ),
    // Products that stay in flight.
    fault(
        "products_in_flight",
        "no wait for the product before",
        "T.warpgroup_wait(1)",
        PASS,
    ),
    fault(
        "products_in_flight",
        "a product too many in flight",
        "T.warpgroup_wait(1)",
        "T.warpgroup_wait(2)",
    ),
    fault(
        "products_in_flight",
        "registers in flight at the end",
        "T.warpgroup_wait(0)",
        PASS,
    ),
    fault(
        "products_in_flight",
        "one product in flight at the end",
        "T.warpgroup_wait(0)",
        "T.warpgroup_wait(1)",
    ),
    fault(
        "products_in_flight",
        "hands the tile in flight back",
        ARRIVE_BEFORE,
        "T.mbarrier_arrive(empty[k % stages])",
    ),
    fault(
        "products_in_flight",
        "hands the tile back that is next",
        ARRIVE_BEFORE,
        "T.mbarrier_arrive(empty[(k + 1) % stages])",
    ),
    fault(
        "products_in_flight",
        "hands tiles back from the start",
        "if k > 0:",
        "if k >= 0:",
    ),
    fault(
        "products_in_flight",
        "hands tiles back late",
        "if k > 0:",
        "if k > 1:",
    ),
    fault(
        "products_in_flight",
        "hands tiles back twice",
        ARRIVE_BEFORE,
        "T.mbarrier_arrive(empty[(k - 1) % stages])\n                        T.mbarrier_arrive(empty[(k - 1) % stages])",
    ),
    fault(
        "products_in_flight",
        "touches registers in flight",
        "T.warpgroup_wait(1)",
        "T.warpgroup_wait(1)\n                    T.clear(C_local)",
    ),
    fault(
        "products_in_flight",
        "no wait for the tile",
        WAIT_FULL,
        PASS,
    ),
    fault("products_in_flight", "no wait for room", WAIT_EMPTY, PASS),
    fault(
        "products_in_flight",
        "producer never arrives",
        ARRIVE_FULL,
        PASS,
    ),
    fault(
        "products_in_flight",
        "producer announces more",
        ARRIVE_FULL,
        "T.mbarrier_arrive_expect_tx(full[k % stages], 1)",
    ),
    fault(
        "products_in_flight",
        "A tells the next barrier",
        TO_A,
        "A_shared[k % stages, :, :], barrier=full[(k + 1) % stages])",
    ),
    fault(
        "products_in_flight",
        "empty counts one group",
        "T.alloc_barrier([256] * stages)",
        "T.alloc_barrier([128] * stages)",
    ),
    // Products that the compiler waits for.
    fault("gemm_waits_itself", "no wait for the tile", WAIT_FULL, PASS),
    fault(
        "gemm_waits_itself",
        "the other parity",
        WAIT_FULL,
        "T.mbarrier_wait_parity(full[k % stages], (k // stages + 1) % 2)",
    ),
    fault(
        "gemm_waits_itself",
        "always parity 0",
        WAIT_FULL,
        "T.mbarrier_wait_parity(full[k % stages], 0)",
    ),
    fault("gemm_waits_itself", "no wait for room", WAIT_EMPTY, PASS),
    fault(
        "gemm_waits_itself",
        "room of the other parity",
        WAIT_EMPTY,
        "T.mbarrier_wait_parity(empty[k % stages], (k // stages) % 2)",
    ),
    fault(
        "gemm_waits_itself",
        "producer never arrives",
        ARRIVE_FULL,
        PASS,
    ),
    fault(
        "gemm_waits_itself",
        "consumers never arrive",
        ARRIVE_EMPTY,
        PASS,
    ),
    fault(
        "gemm_waits_itself",
        "consumers arrive before they read",
        WAIT_FULL,
        "T.mbarrier_wait_parity(full[k % stages], (k // stages) % 2)\n                    T.mbarrier_arrive(empty[k % stages])",
    ),
    fault(
        "gemm_waits_itself",
        "A into one tile",
        TO_A,
        "A_shared[0, :, :], barrier=full[k % stages])",
    ),
    fault(
        "gemm_waits_itself",
        "B tells the next barrier",
        TO_B,
        "B_shared[k % stages, :, :], barrier=full[(k + 1) % stages])",
    ),
    fault(
        "gemm_waits_itself",
        "announces more",
        ARRIVE_FULL,
        "T.mbarrier_arrive_expect_tx(full[k % stages], 16)",
    ),
    // A block without warp groups.
    fault("block", "nobody arrives", "T.mbarrier_arrive(bar)", PASS),
    fault(
        "block",
        "arrives twice",
        "T.mbarrier_arrive(bar)",
        "T.mbarrier_arrive(bar)\n                T.mbarrier_arrive(bar)",
    ),
    fault(
        "block",
        "no wait",
        "T.mbarrier_wait_parity(bar, (half * 3 + k) % 2)",
        PASS,
    ),
    fault(
        "block",
        "the other parity",
        "(half * 3 + k) % 2",
        "(half * 3 + k + 1) % 2",
    ),
    fault(
        "block",
        "the parity of the inner loop",
        "(half * 3 + k) % 2",
        "k % 2",
    ),
    fault("block", "always parity 0", "(half * 3 + k) % 2", "0"),
    fault(
        "block",
        "counts a warp",
        "T.alloc_barrier(128)",
        "T.alloc_barrier(32)",
    ),
    fault(
        "block",
        "counts one too many",
        "T.alloc_barrier(128)",
        "T.alloc_barrier(129)",
    ),
    fault(
        "block",
        "announces more",
        "T.mbarrier_arrive(bar)",
        "T.mbarrier_arrive_expect_tx(bar, 4)",
    ),
    fault(
        "block",
        "a load behind the arrival",
        "T.tma_copy(A[k, 0, bx * 64], line, barrier=bar)\n                T.mbarrier_arrive(bar)",
        "T.mbarrier_arrive(bar)\n                T.tma_copy(A[k, 0, bx * 64], line, barrier=bar)",
    ),
    // One thread arrives.
    fault(
        "elected_arrival",
        "all arrive",
        "if tx == 0:",
        "if tx >= 0:",
    ),
    fault(
        "elected_arrival",
        "nobody arrives",
        "if tx == 0:",
        "if tx == 128:",
    ),
    fault(
        "elected_arrival",
        "another thread arrives",
        "if tx == 0:",
        "if tx == 64:",
    ),
    fault(
        "elected_arrival",
        "no wait",
        "T.mbarrier_wait_parity(full, 0)",
        PASS,
    ),
    fault(
        "elected_arrival",
        "the phase before",
        "T.mbarrier_wait_parity(full, 0)",
        "T.mbarrier_wait_parity(full, 1)",
    ),
    fault(
        "elected_arrival",
        "counts two",
        "T.alloc_barrier(1)",
        "T.alloc_barrier(2)",
    ),
    // Tiles that go out.
    fault(
        "store",
        "no wait before a tile is written again",
        "T.tma_store_wait(1)",
        PASS,
    ),
    fault(
        "store",
        "two groups in flight",
        "T.tma_store_wait(1)",
        "T.tma_store_wait(2)",
    ),
    fault(
        "store",
        "waits in some iterations",
        "T.tma_store_wait(1)",
        "if k > 2:\n                T.tma_store_wait(1)",
    ),
    fault(
        "store",
        "waits behind the write",
        "T.tma_store_wait(1)\n            for i, j in T.Parallel(64, 64):\n                S[k % 2, i, j] = A[bx * 64 + i, k * 64 + j] * 2.0",
        "for i, j in T.Parallel(64, 64):\n                S[k % 2, i, j] = A[bx * 64 + i, k * 64 + j] * 2.0\n            T.tma_store_wait(1)",
    ),
    fault("store", "no group", "T.tma_store_arrive()", PASS),
    fault(
        "store",
        "the group is closed before",
        "T.tma_copy(S[k % 2, :, :], B[bx * 64, k * 64])\n            T.tma_store_arrive()",
        "T.tma_store_arrive()\n            T.tma_copy(S[k % 2, :, :], B[bx * 64, k * 64])",
    ),
    fault("store", "no wait at the end", "T.tma_store_wait(0)", PASS),
    fault(
        "store",
        "one group at the end",
        "T.tma_store_wait(0)",
        "T.tma_store_wait(1)",
    ),
    fault(
        "store",
        "writes the tile in flight",
        "S[k % 2, i, j] =",
        "S[(k + 1) % 2, i, j] =",
    ),
    fault(
        "store_and_load",
        "no wait for the store",
        "T.tma_store_wait()",
        PASS,
    ),
    fault(
        "store_and_load",
        "the store is in flight",
        "T.tma_store_wait()",
        "T.tma_store_wait(1)",
    ),
    fault("store_and_load", "no group", "T.tma_store_arrive()", PASS),
    fault(
        "store_and_load",
        "no wait for the load",
        "T.mbarrier_wait_parity(bar, k % 2)",
        PASS,
    ),
    fault(
        "store_and_load",
        "the other parity",
        "T.mbarrier_wait_parity(bar, k % 2)",
        "T.mbarrier_wait_parity(bar, (k + 1) % 2)",
    ),
    fault(
        "store_and_load",
        "nobody arrives",
        "T.mbarrier_arrive(bar)",
        PASS,
    ),
    fault(
        "groups_store",
        "no wait at the end",
        "T.tma_store_wait(0)",
        PASS,
    ),
    fault(
        "groups_store",
        "no wait of either kind",
        "T.tma_store_wait(0, read=False)",
        PASS,
    ),
    fault(
        "groups_store",
        "both store one tile",
        "T.copy(A[64:128, :], bottom)",
        "T.copy(A[64:128, :], top)",
    ),
    // The example.
    fault(
        "warp_specialized_tma_gemm",
        "dropped arrival of the producer",
        "T.mbarrier_arrive(full[slot])",
        PASS,
    ),
    fault(
        "warp_specialized_tma_gemm",
        "dropped arrival of the consumers",
        "T.mbarrier_arrive(empty[(k - 1) % stages])",
        PASS,
    ),
    fault(
        "warp_specialized_tma_gemm",
        "wrong bytes",
        "T.mbarrier_arrive(full[slot])",
        "T.mbarrier_arrive_expect_tx(full[slot], 64)",
    ),
    fault(
        "warp_specialized_tma_gemm",
        "wrong parity of the consumers",
        "T.mbarrier_wait_parity(full[slot], (k // stages) % 2)",
        "T.mbarrier_wait_parity(full[slot], (k // stages + 1) % 2)",
    ),
    fault(
        "warp_specialized_tma_gemm",
        "wrong parity of the producer",
        "T.mbarrier_wait_parity(empty[slot], (k // stages + 1) % 2)",
        "T.mbarrier_wait_parity(empty[slot], (k // stages) % 2)",
    ),
    fault(
        "warp_specialized_tma_gemm",
        "missing wait for tiles",
        "T.mbarrier_wait_parity(full[slot], (k // stages) % 2)",
        PASS,
    ),
    fault(
        "warp_specialized_tma_gemm",
        "missing wait for products",
        "T.warpgroup_wait(1)\n                    if",
        "if",
    ),
    fault(
        "warp_specialized_tma_gemm",
        "missing wait at the end",
        "T.warpgroup_wait(0)",
        PASS,
    ),
    fault(
        "warp_specialized_tma_gemm",
        "missing wait for the store",
        "T.tma_store_wait(0)",
        PASS,
    ),
    fault(
        "warp_specialized_tma_gemm",
        "a role that never arrives",
        "with T.ws(0, 1):",
        "with T.ws(0):",
    ),
    // Descriptors made by hand.
    fault(
        "tma_descriptor_gemm",
        "bytes of one tile alone",
        "tile_bytes = (block_M + block_N) * block_K * 2",
        "tile_bytes = block_M * block_K * 2",
    ),
    fault(
        "tma_descriptor_gemm",
        "an arrival without bytes",
        "T.mbarrier_arrive_expect_tx(full[slot], tile_bytes)",
        "T.mbarrier_arrive(full[slot])",
    ),
    fault(
        "tma_descriptor_gemm",
        "bytes without an arrival",
        "T.mbarrier_arrive_expect_tx(full[slot], tile_bytes)",
        "T.mbarrier_expect_tx(full[slot], tile_bytes)",
    ),
    fault(
        "tma_descriptor_gemm",
        "a warp loads",
        "if tx == 256:",
        "if tx < 288:",
    ),
    fault(
        "tma_descriptor_gemm",
        "one half of B twice",
        "B_shared[slot, 0, p * box]",
        "B_shared[slot, 0, 0]",
    ),
    fault(
        "tma_descriptor_gemm",
        "one half of B alone",
        "for p in T.unroll(block_N // box):\n                            T.tma_load",
        "for p in T.unroll(1):\n                            T.tma_load",
    ),
    fault(
        "tma_descriptor_gemm",
        "B into the next slot",
        "B_shared[slot, 0, p * box]",
        "B_shared[(slot + 1) % stages, 0, p * box]",
    ),
    fault(
        "tma_descriptor_gemm",
        "A is heard of at the next barrier",
        "A_desc,\n                            full[slot],",
        "A_desc,\n                            full[(slot + 1) % stages],",
    ),
    fault(
        "tma_descriptor_gemm",
        "missing wait for the slot",
        "T.mbarrier_wait_parity(empty[slot], (k // stages + 1) % 2)",
        PASS,
    ),
    fault(
        "tma_descriptor_gemm",
        "missing wait for tiles",
        "T.mbarrier_wait_parity(full[slot], (k // stages) % 2)",
        PASS,
    ),
    fault(
        "tma_descriptor_gemm",
        "missing wait for the store",
        "T.tma_store_wait(0)",
        PASS,
    ),
    fault(
        "tma_descriptor_gemm",
        "a store that no group closes",
        "T.tma_store_arrive()",
        PASS,
    ),
];

/// What may be done otherwise as well.
pub const HARMLESS: &[Fault] = &[
    fault(
        "products",
        "the producer waits for nothing more",
        ARRIVE_FULL,
        "T.mbarrier_arrive_expect_tx(full[k % stages], 0)",
    ),
    fault(
        "products_in_flight",
        "waits for all products",
        "T.warpgroup_wait(1)",
        "T.warpgroup_wait(0)",
    ),
    fault(
        "products_in_flight",
        "fences and closes groups itself",
        "                    T.warpgroup_wait(1)",
        "                    T.warpgroup_commit_batch()\n                    T.warpgroup_wait(1)",
    ),
    fault(
        "block",
        "waits twice",
        "T.mbarrier_wait_parity(bar, (half * 3 + k) % 2)",
        "T.mbarrier_wait_parity(bar, (half * 3 + k) % 2)\n                T.mbarrier_wait_parity(bar, (half * 3 + k) % 2)",
    ),
];

/// Changes of what is compiled that leave a kernel right.
pub const HARMLESS_CHANGES: &[(&str, &str)] = &[
    // All threads of both blocks meet behind it, before the next tile comes.
    ("cluster_halves", "left out: barrier block"),
    // The next load, which all wait for, comes behind the wait for the store.
    ("store_and_load", "left out: barrier block"),
];
