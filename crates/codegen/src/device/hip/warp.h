namespace tw {

TW_FN int lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
// Values of other lanes, of any type of at most eight bytes. The wave's 64 lanes are cut into
// segments of WIDTH.
TW_FN unsigned from_lane(unsigned word, int lane) {
  return (unsigned)__builtin_amdgcn_ds_bpermute(lane << 2, (int)word);
}
template <class T> TW_FN T value_of_lane(T v, int lane) {
  if constexpr (sizeof(T) == 8) {
    unsigned long long bits = to_bits(v);
    unsigned low = from_lane((unsigned)bits, lane), high = from_lane((unsigned)(bits >> 32), lane);
    return from_bits<T>((unsigned long long)high << 32 | low);
  } else {
    return from_bits<T>((typename Raw<sizeof(T)>::type)from_lane((unsigned)to_bits(v), lane));
  }
}
// The word of the lane whose number differs in these bits, without LDS where lanes of a row or of
// neighbouring rows exchange.
template <int MASK> TW_FN unsigned across(unsigned word) {
  if constexpr (MASK == 1) return (unsigned)__builtin_amdgcn_mov_dpp((int)word, 0xb1, 0xf, 0xf, true);
  if constexpr (MASK == 2) return (unsigned)__builtin_amdgcn_mov_dpp((int)word, 0x4e, 0xf, 0xf, true);
  if constexpr (MASK == 4) {
    // Reversed in fours, then in eights.
    int turned = __builtin_amdgcn_mov_dpp((int)word, 0x1b, 0xf, 0xf, true);
    return (unsigned)__builtin_amdgcn_mov_dpp(turned, 0x141, 0xf, 0xf, true);
  }
  if constexpr (MASK == 8) return (unsigned)__builtin_amdgcn_mov_dpp((int)word, 0x128, 0xf, 0xf, true);
#if defined(__gfx950__)
  if constexpr (MASK == 16) {
    auto both = __builtin_amdgcn_permlane16_swap(word, word, false, false);
    return lane_id() & 16 ? both[0] : both[1];
  }
  if constexpr (MASK == 32) {
    auto both = __builtin_amdgcn_permlane32_swap(word, word, false, false);
    return lane_id() & 32 ? both[0] : both[1];
  }
#else
  if constexpr (MASK == 16) return (unsigned)__builtin_amdgcn_ds_swizzle((int)word, 0x401f);
#endif
  return from_lane(word, lane_id() ^ MASK);
}
template <int MASK, class T> TW_FN T exchanged(T v) {
  if constexpr (sizeof(T) == 8) {
    unsigned long long bits = to_bits(v);
    unsigned low = across<MASK>((unsigned)bits), high = across<MASK>((unsigned)(bits >> 32));
    return from_bits<T>((unsigned long long)high << 32 | low);
  } else {
    return from_bits<T>((typename Raw<sizeof(T)>::type)across<MASK>((unsigned)to_bits(v)));
  }
}
// MASK is a constant wherever this is called, so one case is left.
template <class T> TW_FN T shuffle_xor(T v, int mask, int) {
  switch (mask) {
    case 1: return exchanged<1>(v);
    case 2: return exchanged<2>(v);
    case 4: return exchanged<4>(v);
    case 8: return exchanged<8>(v);
    case 16: return exchanged<16>(v);
    case 32: return exchanged<32>(v);
    default: return value_of_lane(v, lane_id() ^ mask);
  }
}
template <class T> TW_FN T shuffle_index(T v, int lane, int width) {
  return value_of_lane(v, (lane_id() & ~(width - 1)) | (lane & (width - 1)));
}
template <class T> TW_FN T shuffle_up(T v, int by, int width) {
  int lane = lane_id();
  return value_of_lane(v, (lane & (width - 1)) < by ? lane : lane - by);
}
template <class T> TW_FN T shuffle_down(T v, int by, int width) {
  int lane = lane_id();
  return value_of_lane(v, (lane & (width - 1)) + by >= width ? lane : lane + by);
}
// Folds a value over the wave; each lane receives the result.
template <class T, class F> TW_FN T warp_fold(T v, F fold) {
#pragma unroll
  for (int by = 32; by > 0; by /= 2) v = fold(v, shuffle_xor(v, by, 64));
  return v;
}
TW_FN unsigned long long ballot(bool v) { return __builtin_amdgcn_ballot_w64(v); }
TW_FN bool any(bool v) { return ballot(v) != 0; }
TW_FN bool all(bool v) { return ballot(!v) == 0; }
// How many threads of the block say yes, by a word of LDS.
TW_FN int block_count(unsigned* word, int thread, bool v) {
  __syncthreads();
  if (thread == 0) *word = 0;
  __syncthreads();
  unsigned long long votes = ballot(v);
  if (lane_id() == 0)
    __scoped_atomic_fetch_add(word, (unsigned)__popcll(votes), __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
  __syncthreads();
  return (int)*word;
}
// Lanes go together; the compiler keeps their memory accesses on their side.
TW_FN void sync_warp() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

}  // namespace tw
