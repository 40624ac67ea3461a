namespace tw {

template <int BYTES> TW_FN auto buffer_words(Tensor from, unsigned lane, unsigned shared) {
  if constexpr (BYTES == 16) return __builtin_amdgcn_raw_buffer_load_b128(from, lane, shared, 0);
  else if constexpr (BYTES == 12) return __builtin_amdgcn_raw_buffer_load_b96(from, lane, shared, 0);
  else if constexpr (BYTES == 8) return __builtin_amdgcn_raw_buffer_load_b64(from, lane, shared, 0);
  else return __builtin_amdgcn_raw_buffer_load_b32(from, lane, shared, 0);
}
// BYTES of a tensor into a register array, from an element on: each lane reads at `lane` bytes, its
// own, plus `shared`, the same for all and in a scalar register.
template <int BYTES, class T>
TW_FN void load_buffer(T* regs, int at, Tensor from, unsigned lane, unsigned shared) {
  auto words = buffer_words<BYTES>(from, lane, shared);
  if constexpr (BYTES == 12) {
#pragma unroll
    for (int i = 0; i < 3; ++i) set_word(regs + at, i, words[i]);
  } else {
    load<BYTES>(regs, at, (const T*)&words);
  }
}
template <int BYTES, class T, int N>
TW_FN void load_buffer(Regs<T, N>& regs, int at, Tensor from, unsigned lane, unsigned shared) {
  auto words = buffer_words<BYTES>(from, lane, shared);
  if constexpr (BYTES == 12) {
#pragma unroll
    for (int i = 0; i < 3; ++i) regs.at(at)[i] = words[i];
  } else {
    load<BYTES>(regs, at, (const T*)&words);
  }
}

}  // namespace tw
