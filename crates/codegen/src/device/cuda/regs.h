namespace tw {

// Puts an element of WIDTH bits into its place of a word.
template <int WIDTH> TW_FN void insert(unsigned& word, int place, unsigned bits) {
  constexpr unsigned MASK = (1u << WIDTH) - 1;
  int shift = place * WIDTH;
  word = (word & ~(MASK << shift)) | (bits & MASK) << shift;
}

// Elements of 4, 8 or 16 bits packed into registers. Indices are constants once loops are
// unrolled, so nothing of it is in memory.
template <class T, int N> struct Regs {
  static constexpr int WIDTH = Element<T>::width;
  static constexpr int PER_WORD = 32 / WIDTH;
  static constexpr unsigned MASK = (1u << WIDTH) - 1;
  unsigned words[(N + PER_WORD - 1) / PER_WORD];
  TW_FN T operator[](int i) const {
    return from_bits<T>(
        (typename Raw<sizeof(T)>::type)(words[i / PER_WORD] >> (i % PER_WORD * WIDTH) & MASK));
  }
  TW_FN void set(int i, T v) {
    insert<WIDTH>(words[i / PER_WORD], i % PER_WORD, to_bits(v));
  }
  // The registers from an element on.
  TW_FN unsigned* at(int i) { return words + i / PER_WORD; }
  TW_FN const unsigned* at(int i) const { return words + i / PER_WORD; }
};

}  // namespace tw
