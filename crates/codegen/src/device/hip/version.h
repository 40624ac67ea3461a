namespace tw {

// A version of a buffer in LDS, from its first element on. All lanes agree on that, and the
// compiler is kept from looking into it: it stays one scalar, and what a lane adds to it is the
// same in every turn of the loop. Seen through, `k % 3 * N` becomes two terms of every address.
template <class T> TW_FN T* version(T* buffer, int first) {
  asm("" : "+s"(first));
  return buffer + first;
}

}  // namespace tw
