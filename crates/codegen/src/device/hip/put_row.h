namespace tw {

// Puts an element of a word into its place of another, after those of the places before it, of which
// each came from the same place of its word. The first of them stays where it is until the second comes:
// so two to a register take one instruction, and four share what they do for neighbours.
template <int WIDTH> TW_FN void put_row(unsigned& word, int place, unsigned from, int of) {
  if (place == 0) {
    word = from;
  } else if constexpr (WIDTH == 16) {
    word = __builtin_amdgcn_perm(from, word, of == 0 ? 0x05040100u : 0x07060302u);
  } else {
    unsigned first = of % 2 * 2;
    unsigned select = place == 1   ? (of < 2 ? 0x05010400u : 0x07030602u)
                      : place == 2 ? 0x03000000u | (4 + of) << 16 | (first + 1) << 8 | first
                                   : (4u + of) << 24 | 0x020100u;
    word = __builtin_amdgcn_perm(from, word, select);
  }
}

}  // namespace tw
