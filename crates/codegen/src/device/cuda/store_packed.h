namespace tw {

// Stores an element of memory in which two share a byte: its bits alone are changed, so that nobody who
// stores to the rest of the word meanwhile is undone.
template <class T> TW_FN void store_packed(void* memory, long long index, T v) {
  char* p = (char*)memory + (index >> 1);
  int byte = (int)((unsigned long long)p & 3), shift = byte * 8 + (int)(index & 1) * 4;
  unsigned* word = (unsigned*)(p - byte);
  atomicAnd(word, ~(15u << shift));
  atomicOr(word, ((unsigned)to_bits(v) & 15) << shift);
}

}  // namespace tw
