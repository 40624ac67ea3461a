namespace tw {

// Until at most so many operations of this wave are under way: VM of global memory, LGKM of LDS.
// 63 and 15 wait for nothing. No instruction moves across, so that the count means what the
// schedule said.
template <int VM, int LGKM> TW_FN void wait() {
  __builtin_amdgcn_sched_barrier(0);
  asm volatile("" ::: "memory");
  __builtin_amdgcn_s_waitcnt((VM & 15) | VM >> 4 << 14 | 0x70 | LGKM << 8);
  __builtin_amdgcn_sched_barrier(0);
}
// An argument of the kernel is in registers from here on.
template <typename T> TW_FN void loaded(T argument) { asm volatile("" ::"s"(argument)); }
template <int COUNT, typename T> struct Sum {
  typedef T type __attribute__((ext_vector_type(COUNT)));
  static TW_FN type of(const T* c) {
    type sum;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum[i] = c[i];
    return sum;
  }
  static TW_FN void to(T* c, type sum) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) c[i] = sum[i];
  }
};
// A matrix instruction stays where it is: what computes without touching memory moves across all that
// follows here.
template <int COUNT, typename T> TW_FN void multiplied(T* c) {
  typename Sum<COUNT, T>::type sum = Sum<COUNT, T>::of(c);
  asm volatile("" : "+v"(sum));
  Sum<COUNT, T>::to(c, sum);
}
// A wait state between a matrix instruction and who reads its sum, beside those that clang knows of.
template <int COUNT, typename T> TW_FN void late_sum(T* c) {
  typename Sum<COUNT, T>::type sum = Sum<COUNT, T>::of(c);
  asm("s_nop 0" : "+v"(sum));
  Sum<COUNT, T>::to(c, sum);
}
// No instruction moves across, nor does a load sink to where its value is used.
TW_FN void fix_order() {
  asm volatile("" ::: "memory");
  __builtin_amdgcn_sched_barrier(0);
}
// All waves of the block, waiting for no memory.
TW_FN void barrier() {
  __builtin_amdgcn_sched_barrier(0);
  asm volatile("" ::: "memory");
  __builtin_amdgcn_s_barrier();
  asm volatile("" ::: "memory");
  __builtin_amdgcn_sched_barrier(0);
}

}  // namespace tw
