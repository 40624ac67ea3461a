namespace tw {

// An element of memory in which some share a byte: a stream of bits.
template <class T> TW_FN T packed(const void* memory, long long index) {
  constexpr int WIDTH = Element<T>::width;
  const unsigned char* p = (const unsigned char*)memory + (index * WIDTH >> 3);
  int shift = (int)(index * WIDTH & 7);
  unsigned bits = *p;
  // Only where the element ends there: behind it memory may end.
  if (8 % WIDTH != 0 && shift + WIDTH > 8) bits |= (unsigned)p[1] << 8;
  return from_bits<T>((unsigned char)(bits >> shift & ((1u << WIDTH) - 1)));
}

}  // namespace tw
