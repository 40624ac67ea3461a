namespace tw {

// What a lane gives a matrix instruction of registers that stand as their rows were read: COUNT elements,
// each APART places behind the one before it. Two to a register, one instruction puts them together; of
// four, instructions that share what they do for neighbours.
template <int COUNT, int APART, class T, int N>
TW_FN Regs<T, COUNT> apart(const Regs<T, N>& regs, int at) {
  typedef Regs<T, COUNT> Own;
  Own own = {};
  int place = at % Own::PER_WORD;
  const unsigned* from = regs.at(at);
  if constexpr (Own::WIDTH == 16 && APART % 2 == 0 && COUNT % 2 == 0) {
    constexpr int NEXT = APART / 2;
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i, from += 2 * NEXT)
      own.words[i] =
          __builtin_amdgcn_perm(from[NEXT], from[0], place == 0 ? 0x05040100u : 0x07060302u);
  } else if constexpr (Own::WIDTH == 8 && APART % 4 == 0 && COUNT % 4 == 0) {
    constexpr int NEXT = APART / 4;
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i, from += 4 * NEXT) {
      unsigned pairs = place < 2 ? 0x05010400u : 0x07030602u;
      unsigned low = __builtin_amdgcn_perm(from[NEXT], from[0], pairs);
      unsigned high = __builtin_amdgcn_perm(from[3 * NEXT], from[2 * NEXT], pairs);
      own.words[i] =
          __builtin_amdgcn_perm(high, low, place % 2 == 0 ? 0x05040100u : 0x07060302u);
    }
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) own.set(i, regs[at + i * APART]);
  }
  return own;
}

}  // namespace tw
