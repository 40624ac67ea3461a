namespace tw {

// An element of memory in which two share a byte.
template <class T> TW_FN T packed(const void* memory, long long index) {
  unsigned char byte = ((const unsigned char*)memory)[index >> 1];
  return from_bits<T>((unsigned char)(byte >> (index & 1) * 4 & 15));
}

}  // namespace tw
