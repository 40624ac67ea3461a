namespace tw {

// A place in a permuted buffer, in two parts: the thread's and a constant one. What of the constant
// is in M is XORed, the rest an offset of the instruction.
template <int M> TW_FN int place(int thread, int constant) {
  return (thread ^ (constant & M)) + (constant & ~M);
}

}  // namespace tw
