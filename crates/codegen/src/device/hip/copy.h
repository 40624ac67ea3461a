namespace tw {

// A value that all lanes of the wave agree on, in a scalar register. The machine wants five wait
// states before a memory instruction reads it, which the compiler does not see in assembly.
TW_FN int wave_value(int v) {
  int s = __builtin_amdgcn_readfirstlane(v);
  asm volatile("s_nop 4" : "+s"(s));
  return s;
}
// The same value, in a scalar register of this place: what is made of it is made here.
TW_FN unsigned again(unsigned s) {
  asm volatile("" : "+s"(s));
  return s;
}
// A place in LDS as the machine counts it.
TW_FN unsigned lds_address(const void* p) {
  return (unsigned)(unsigned long long)(__attribute__((address_space(3))) const void*)p;
}
// The place of the wave's first lane, from this lane's own.
template <int BYTES> TW_FN unsigned first_lane_address(const void* p) {
  int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  return (unsigned)wave_value((int)(lds_address(p) - lane * BYTES));
}
// The wave copies BYTES a lane from global memory to LDS, lane after lane from `to`. Lanes read at
// `offset` bytes, each its own, plus `advance`, the same for all; an offset of -1 is past the end.
// It is assembly, so the compiler adds no wait for it: the schedule's wait counts it. Nor does it
// add wait states: one after m0 was written, and five after a vector instruction wrote `advance`,
// as `readfirstlane` does where the compiler has it in a vector register. A scalar move is the
// one, and no state is needed before it nor between it and the copy.
template <int BYTES> TW_FN void copy_to_lds(unsigned to, Tensor from, unsigned offset, unsigned advance) {
  to = (unsigned)__builtin_amdgcn_readfirstlane((int)to);
  advance = (unsigned)__builtin_amdgcn_readfirstlane((int)advance);
  unsigned moved;
  if constexpr (BYTES == 16)
    asm volatile("s_mov_b32 %0, %4\n\tbuffer_load_dwordx4 %2, %3, %0 offen lds"
                 : "=&s"(moved) : "{m0}"(to), "v"(offset), "s"(from), "s"(advance) : "memory");
  else if constexpr (BYTES == 12)
    asm volatile("s_mov_b32 %0, %4\n\tbuffer_load_dwordx3 %2, %3, %0 offen lds"
                 : "=&s"(moved) : "{m0}"(to), "v"(offset), "s"(from), "s"(advance) : "memory");
  else
    asm volatile("s_mov_b32 %0, %4\n\tbuffer_load_dword %2, %3, %0 offen lds"
                 : "=&s"(moved) : "{m0}"(to), "v"(offset), "s"(from), "s"(advance) : "memory");
}

}  // namespace tw
