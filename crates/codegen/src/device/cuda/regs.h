namespace tw {

// Puts an element of WIDTH bits into its place of a word.
template <int WIDTH> TW_FN void insert(unsigned& word, int place, unsigned bits) {
  constexpr unsigned MASK = (1u << WIDTH) - 1;
  int shift = place * WIDTH;
  word = (word & ~(MASK << shift)) | (bits & MASK) << shift;
}

// Elements of 4, 6, 8 or 16 bits packed into registers. Indices are constants once loops are
// unrolled, so nothing of it is in memory.
template <class T, int N> struct Regs {
  static constexpr int WIDTH = Element<T>::width;
  static constexpr int PER_WORD = 32 / WIDTH;
  static constexpr unsigned MASK = (1u << WIDTH) - 1;
  // Elements of six bits may end in the next word.
  static constexpr bool STREAM = 32 % WIDTH != 0;
  unsigned words[STREAM ? (N * WIDTH + 31) / 32 : (N + PER_WORD - 1) / PER_WORD];
  TW_FN T operator[](int i) const {
    typedef typename Raw<sizeof(T)>::type Bits;
    if constexpr (STREAM) return from_bits<T>((Bits)field(i * WIDTH, WIDTH));
    else return from_bits<T>((Bits)(words[i / PER_WORD] >> (i % PER_WORD * WIDTH) & MASK));
  }
  TW_FN void set(int i, T v) {
    if constexpr (STREAM) put_field(i * WIDTH, WIDTH, to_bits(v));
    else insert<WIDTH>(words[i / PER_WORD], i % PER_WORD, to_bits(v));
  }
  // Up to 16 bits from one on.
  TW_FN unsigned field(int bit, int width) const {
    int word = bit / 32, shift = bit % 32;
    unsigned bits = words[word] >> shift;
    if (shift + width > 32) bits |= words[word + 1] << (32 - shift);
    return bits & ((1u << width) - 1);
  }
  TW_FN void put_field(int bit, int width, unsigned bits) {
    int word = bit / 32, shift = bit % 32;
    unsigned mask = (1u << width) - 1;
    bits &= mask;
    words[word] = (words[word] & ~(mask << shift)) | bits << shift;
    if (shift + width > 32)
      words[word + 1] = (words[word + 1] & ~(mask >> (32 - shift))) | bits >> (32 - shift);
  }
  // The registers from an element on.
  TW_FN unsigned* at(int i) { return words + (STREAM ? i * WIDTH / 32 : i / PER_WORD); }
  TW_FN const unsigned* at(int i) const { return words + (STREAM ? i * WIDTH / 32 : i / PER_WORD); }
};

}  // namespace tw
