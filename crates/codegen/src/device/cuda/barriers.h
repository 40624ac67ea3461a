namespace tw {

// A barrier of some threads of the block.
TW_FN void sync_named(int id, int count) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory"); }

// Arrival barriers in shared memory.
TW_FN unsigned mbarrier_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
TW_FN void mbarrier_init(unsigned long long* bar, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(mbarrier_address(bar)), "r"(count) : "memory");
}
TW_FN void mbarrier_arrive(unsigned long long* bar) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(mbarrier_address(bar)) : "memory");
}
// The lanes of the warp come together, and one arrives for all of them.
TW_FN void mbarrier_arrive_warp(unsigned lanes, unsigned long long* bar) {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  __syncwarp(lanes);
  if (lane == 0) mbarrier_arrive(bar);
}
#if __CUDA_ARCH__ >= 900
TW_FN bool mbarrier_test(unsigned long long* bar, unsigned parity) {
  unsigned done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done) : "r"(mbarrier_address(bar)), "r"(parity) : "memory");
  return done;
}
TW_FN void mbarrier_expect(unsigned long long* bar, unsigned bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(mbarrier_address(bar)), "r"(bytes) : "memory");
}
TW_FN void mbarrier_arrive_expect(unsigned long long* bar, unsigned bytes) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(mbarrier_address(bar)), "r"(bytes) : "memory");
}
#else
TW_FN bool mbarrier_test(unsigned long long* bar, unsigned parity) {
  unsigned done;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done) : "r"(mbarrier_address(bar)), "r"(parity) : "memory");
  return done;
}
#endif
TW_FN void mbarrier_wait(unsigned long long* bar, unsigned parity) {
  while (!mbarrier_test(bar, parity)) {}
}

}  // namespace tw
