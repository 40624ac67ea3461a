namespace tw {

// Arrivals at a barrier in LDS are counted round and round through two phases: the machine has
// an atomic increment that wraps.
struct Arrivals { unsigned seen, count; };
TW_FN Arrivals& arrivals(unsigned long long* bar) { return *(Arrivals*)bar; }
TW_FN bool in_second_phase(Arrivals& a) {
  return __scoped_atomic_load_n(&a.seen, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP) >= a.count;
}
TW_FN void mbarrier_init(unsigned long long* bar, unsigned count) {
  arrivals(bar).seen = 0;
  arrivals(bar).count = count;
}
TW_FN void mbarrier_arrive(unsigned long long* bar) {
  Arrivals& a = arrivals(bar);
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  drain_lds();
  __builtin_amdgcn_atomic_inc32(&a.seen, 2 * a.count - 1, __ATOMIC_RELAXED, "workgroup");
}
// The lanes of the wave come together, and one arrives for all of them.
TW_FN void mbarrier_arrive_warp(unsigned long long* bar) {
  if (__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)) == 0) mbarrier_arrive(bar);
}
// Until the phase of this parity is over.
TW_FN void mbarrier_wait(unsigned long long* bar, unsigned parity) {
  Arrivals& a = arrivals(bar);
  while (in_second_phase(a) == (parity != 0)) __builtin_amdgcn_s_sleep(1);
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// A barrier of some waves of the block: one lane of each arrives.
TW_FN void sync_named(unsigned long long* bar) {
  Arrivals& a = arrivals(bar);
  bool second = in_second_phase(a);
  mbarrier_arrive_warp(bar);
  while (in_second_phase(a) == second) __builtin_amdgcn_s_sleep(1);
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

}  // namespace tw
