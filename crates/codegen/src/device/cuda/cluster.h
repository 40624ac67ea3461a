namespace tw {

// The number of the block in its cluster.
TW_FN int cluster_rank() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// All threads of all blocks of the cluster wait for each other.
TW_FN void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}
// The halves of that: a thread comes there, and waits for the others later.
TW_FN void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
TW_FN void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
// At a block's barrier. An order of memory said here would be a fence of the whole device; as it is the
// arrival is one of the cluster.
TW_FN void mbarrier_arrive_at(unsigned rank, unsigned long long* bar) {
  asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there]; }"
               ::"r"(mbarrier_address(bar)), "r"(rank) : "memory");
}
// At the barriers of all blocks.
TW_FN void mbarrier_arrive_cluster(unsigned blocks, unsigned long long* bar) {
  for (unsigned rank = 0; rank < blocks; ++rank) mbarrier_arrive_at(rank, bar);
}
// The lanes of the warp come together, and one for each block arrives there for all of them.
TW_FN void mbarrier_arrive_cluster_warp(unsigned lanes, unsigned blocks, unsigned long long* bar) {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  __syncwarp(lanes);
  if (lane < blocks) mbarrier_arrive_at(lane, bar);
}

}  // namespace tw
