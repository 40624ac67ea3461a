namespace tw {

// Stores an element of memory in which some share a byte: its bits alone are changed, so that nobody
// who stores to the rest of a word meanwhile is undone.
template <class T> TW_FN void store_packed(void* memory, long long index, T v) {
  constexpr int WIDTH = Element<T>::width;
  constexpr unsigned MASK = (1u << WIDTH) - 1;
  char* p = (char*)memory + (index * WIDTH >> 3);
  int byte = (int)((unsigned long long)p & 3), shift = byte * 8 + (int)(index * WIDTH & 7);
  unsigned* word = (unsigned*)(p - byte);
  unsigned bits = (unsigned)to_bits(v) & MASK;
  atomicAnd(word, ~(MASK << shift));
  atomicOr(word, bits << shift);
  if (8 % WIDTH != 0 && shift + WIDTH > 32) {
    atomicAnd(word + 1, ~(MASK >> (32 - shift)));
    atomicOr(word + 1, bits >> (32 - shift));
  }
}

}  // namespace tw
