namespace tw {

// Adds to the two elements of a word of global memory in one exchange.
TW_FN void atomic_add(bf16* p, bf16 a, bf16 b) {
  unsigned* word = (unsigned*)p;
  unsigned seen = *(volatile unsigned*)word, expected;
  do {
    expected = seen;
    bf16 low(__uint_as_float(expected << 16) + (float)a);
    bf16 high(__uint_as_float(expected & 0xffff0000u) + (float)b);
    seen = atomicCAS(word, expected, (unsigned)high.bits << 16 | low.bits);
  } while (seen != expected);
}

}  // namespace tw
