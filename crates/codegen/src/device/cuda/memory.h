namespace tw {

// Bytes that one instruction moves.
template <int BYTES> struct Vector { typedef typename Raw<BYTES>::type type; };
template <> struct Vector<16> { typedef uint4 type; };
template <> struct Vector<8> { typedef uint2 type; };

TW_FN unsigned word(unsigned v, int) { return v; }
TW_FN unsigned word(uint2 v, int i) { return i == 0 ? v.x : v.y; }
TW_FN unsigned word(uint4 v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
TW_FN void put(unsigned& v, int, unsigned w) { v = w; }
TW_FN void put(uint2& v, int i, unsigned w) { (i == 0 ? v.x : v.y) = w; }
TW_FN void put(uint4& v, int i, unsigned w) { (i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w) = w; }

// Words of register arrays: elements of four or eight bytes.
template <class T> TW_FN unsigned get_word(const T* regs, int i) {
  if constexpr (sizeof(T) == 4) return to_bits(regs[i]);
  else return (unsigned)(to_bits(regs[i / 2]) >> (i % 2 * 32));
}
template <class T> TW_FN void set_word(T* regs, int i, unsigned w) {
  if constexpr (sizeof(T) == 4) {
    regs[i] = from_bits<T>(w);
  } else {
    unsigned long long both = to_bits(regs[i / 2]);
    int shift = i % 2 * 32;
    regs[i / 2] = from_bits<T>((both & ~(0xffffffffull << shift)) | (unsigned long long)w << shift);
  }
}

// Memory to memory, through registers that nobody else sees.
template <int BYTES> TW_FN typename Vector<BYTES>::type fetch(const void* from) {
  return *(const typename Vector<BYTES>::type*)from;
}
template <int BYTES> TW_FN void drop(void* to, typename Vector<BYTES>::type v) {
  *(typename Vector<BYTES>::type*)to = v;
}

// BYTES of memory into a register array, from an element on.
template <int BYTES, class T> TW_FN void load(T* regs, int at, const T* from) {
  typename Vector<BYTES>::type v = fetch<BYTES>(from);
#pragma unroll
  for (int i = 0; i < BYTES / 4; ++i) set_word(regs + at, i, word(v, i));
}
template <int BYTES, class T, int N> TW_FN void load(Regs<T, N>& regs, int at, const void* from) {
  typename Vector<BYTES>::type v = fetch<BYTES>(from);
  if constexpr (BYTES >= 4) {
#pragma unroll
    for (int i = 0; i < BYTES / 4; ++i) regs.at(at)[i] = word(v, i);
  } else {
    int shift = at % Regs<T, N>::PER_WORD * Regs<T, N>::WIDTH;
    unsigned mask = (1u << 8 * BYTES) - 1;
    unsigned& word = *regs.at(at);
    word = (word & ~(mask << shift)) | (unsigned)v << shift;
  }
}

// A register array from an element on into BYTES of memory.
template <int BYTES, class T> TW_FN void store(T* to, const T* regs, int at) {
  typename Vector<BYTES>::type v;
#pragma unroll
  for (int i = 0; i < BYTES / 4; ++i) put(v, i, get_word(regs + at, i));
  drop<BYTES>(to, v);
}
template <int BYTES, class T, int N> TW_FN void store(void* to, const Regs<T, N>& regs, int at) {
  typename Vector<BYTES>::type v;
  if constexpr (BYTES >= 4) {
#pragma unroll
    for (int i = 0; i < BYTES / 4; ++i) put(v, i, regs.at(at)[i]);
  } else {
    int shift = at % Regs<T, N>::PER_WORD * Regs<T, N>::WIDTH;
    v = (typename Vector<BYTES>::type)(*regs.at(at) >> shift);
  }
  drop<BYTES>(to, v);
}

// A vector with a value in every element.
template <int BYTES, class T> TW_FN typename Vector<BYTES>::type splat(T v) {
  typename Vector<BYTES>::type all;
  if constexpr (BYTES < 4) {
    all = 0;
    for (int i = 0; i < BYTES / (int)sizeof(T); ++i)
      all |= (typename Vector<BYTES>::type)(to_bits(v) << (i * 8 * (int)sizeof(T)));
  } else {
    for (int i = 0; i < BYTES / 4; ++i) {
      unsigned w = 0;
      if constexpr (sizeof(T) == 8) {
        w = (unsigned)(to_bits(v) >> (i % 2 * 32));
      } else {
        for (int j = 0; j < 4 / (int)sizeof(T); ++j) w |= (unsigned)to_bits(v) << (j * 8 * (int)sizeof(T));
      }
      put(all, i, w);
    }
  }
  return all;
}

// The same value in elements of registers.
template <int COUNT, class T> TW_FN void fill(T* regs, int at, T v) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) regs[at + i] = v;
}
template <int COUNT, class T, int N> TW_FN void fill(Regs<T, N>& regs, int at, T v) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) regs.set(at + i, v);
}

}  // namespace tw
