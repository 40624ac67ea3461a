namespace tw {

// An element of a permuted buffer, its place in two parts: the thread's, whose bits are M's, and
// a constant. What the constant has outside of M is an offset of the instruction.
template <int M, class T> TW_FN T* at(T* start, int thread, int constant) {
  return start + (thread ^ (constant & M)) + (constant & ~M);
}

}  // namespace tw
