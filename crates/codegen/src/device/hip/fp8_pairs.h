namespace tw {

// An element of packed registers, converted together with the one beside it.
template <int N> TW_FN float decoded(const Regs<e4m3, N>& from, int i) {
  unsigned codes = __builtin_amdgcn_perm(0, from.words[i / 4], i % 4 < 2 ? 0x010c000cu : 0x030c020cu);
  return (float)fp8_values(codes)[i % 2];
}

}  // namespace tw
