namespace tw {

// Products of a warp group. Accumulators are named again where they are waited for, so that the
// compiler leaves them alone while a product is in flight.
TW_FN void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TW_FN void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int GROUPS> TW_FN void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(GROUPS) : "memory");
}
template <int N> TW_FN void in_place(float (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(r[i])::"memory");
}
template <int N> TW_FN void in_place(int (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(r[i])::"memory");
}
template <int N> TW_FN void in_place(unsigned (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(r[i])::"memory");
}
// What this thread has written to shared memory is shown to who reads it by the async proxy.
TW_FN void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// A tile of shared memory: how it lies, and where it starts, in units of 16 bytes: the buffer, an element of
// it, and units further on. These are added by themselves, so that what loops do not change is one number.
// The bits above say which block of a cluster it is, and have no place here.
template <class T>
TW_FN unsigned long long tile(unsigned high, unsigned low, const T* base, int i, unsigned further = 0) {
  unsigned start = (shared_address(base, 0) & 0x3ffff) / 16 + (unsigned)i * (unsigned)sizeof(T) / 16;
  return (unsigned long long)high << 32 | (low + start + further);
}
// The same in every lane, and known to be: products take descriptors from registers that a warp has
// in common.
TW_FN int warp_value(int v) { return __shfl_sync(0xffffffff, v, 0); }

}  // namespace tw
