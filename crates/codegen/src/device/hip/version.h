namespace tw {

// A version of a buffer in LDS, from its first element on. All lanes agree on that, and the
// compiler is kept from looking into it: it stays one scalar, and what a lane adds to it is the
// same in every turn of the loop. Seen through, `k % 3 * N` becomes two terms of every address.
// `readfirstlane` is nothing where the compiler has it in a scalar register; where it chose a vector
// register (a counter of two turns that lanes compare with), assembly is refused without it.
template <class T> TW_FN T* version(T* buffer, int first) {
  first = __builtin_amdgcn_readfirstlane(first);
  asm("" : "+s"(first));
  return buffer + first;
}

}  // namespace tw
