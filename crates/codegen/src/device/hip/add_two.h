namespace tw {

// Adds to both elements of a word, each atomic on its own, in one operation on global memory or LDS.
// Gives the word as it was.
TW_FN unsigned add_word(HALF* p, unsigned v) {
  typedef NATIVE Two __attribute__((ext_vector_type(2)));
  return __builtin_bit_cast(
      unsigned, __builtin_amdgcn_flat_atomic_fadd_v2HALF((Two*)p, __builtin_bit_cast(Two, v)));
}

// Adds to neighbours. The address is a multiple of both.
TW_FN void atomic_add(HALF* p, HALF a, HALF b) { add_word(p, (unsigned)b.bits << 16 | a.bits); }

}  // namespace tw
