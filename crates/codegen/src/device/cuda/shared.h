namespace tw {

// The address of an element of shared memory as instructions take it: 32 bits, so that a constant
// part of the index becomes the offset of the instruction.
template <class T> TW_FN unsigned shared_address(const T* base, int i) {
  return (unsigned)__cvta_generic_to_shared(base) + (unsigned)i * (unsigned)sizeof(T);
}

}  // namespace tw
