namespace tw {

// Adds to both elements of a word, each atomic on its own, in one operation on global memory or LDS.
// Gives the word as it was.
TW_FN unsigned add_word(f16* p, unsigned v) {
  typedef _Float16 Two __attribute__((ext_vector_type(2)));
  return __builtin_bit_cast(
      unsigned, __builtin_amdgcn_flat_atomic_fadd_v2f16((Two*)p, __builtin_bit_cast(Two, v)));
}

}  // namespace tw
