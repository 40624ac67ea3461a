namespace tw {

// Adds to neighbours. The address is a multiple of both.
TW_FN void atomic_add(HALF* p, HALF a, HALF b) { add_word(p, (unsigned)b.bits << 16 | a.bits); }

}  // namespace tw
