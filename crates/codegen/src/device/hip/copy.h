namespace tw {

// A tensor as the machine's buffer of that many bytes: reads past the end give zeros.
typedef __amdgpu_buffer_rsrc_t Buffer;
TW_FN Buffer buffer(const void* base, long long bytes) {
  int size = bytes > 0xffffffffll ? -1 : (int)bytes;
  return __builtin_amdgcn_make_buffer_rsrc(const_cast<void*>(base), 0, size, 0x00027000);
}
// The wave copies BYTES a lane from global memory to LDS, lane after lane; `to` is the lane's own
// place. An offset of -1 is past the end. It is assembly, so the compiler adds no wait for it: the schedule's wait counts it.
template <int BYTES> TW_FN void copy_to_lds(void* to, Buffer from, int offset) {
  unsigned base = (unsigned)(unsigned long long)(__attribute__((address_space(3))) void*)to;
  int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  base = __builtin_amdgcn_readfirstlane(base - lane * BYTES);
  if constexpr (BYTES == 16)
    asm volatile("s_nop 4\n\tbuffer_load_dwordx4 %1, %2, 0 offen lds"
                 ::"{m0}"(base), "v"(offset), "s"(from) : "memory");
  else
    asm volatile("s_nop 4\n\tbuffer_load_dword %1, %2, 0 offen lds"
                 ::"{m0}"(base), "v"(offset), "s"(from) : "memory");
}

}  // namespace tw
