namespace tw {

// Atomic read-modify-write of one element. What the machine has is used, the rest is a loop of
// compare-and-swap on the word around the element.
enum Rmw { ADD, MAX, MIN, OR, AND, XOR, EXCHANGE };
template <Rmw OP, class T> TW_FN T combine(T old, T v) {
  if constexpr (OP == ADD) return (T)(old + v);
  else if constexpr (OP == MAX) return v > old || old != old ? v : old;
  else if constexpr (OP == MIN) return v < old || old != old ? v : old;
  else if constexpr (OP == OR) return (T)(old | v);
  else if constexpr (OP == AND) return (T)(old & v);
  else if constexpr (OP == XOR) return (T)(old ^ v);
  else return v;
}
template <Rmw OP, class T> TW_FN T atomic(T* p, T v) {
  if constexpr (sizeof(T) == 8) {
    unsigned long long* word = (unsigned long long*)p;
    unsigned long long seen = peek(word), expected;
    do {
      expected = seen;
      seen = atomicCAS(word, expected, to_bits(combine<OP>(from_bits<T>(expected), v)));
    } while (seen != expected);
    return from_bits<T>(seen);
  } else if constexpr (sizeof(T) == 4) {
    unsigned* word = (unsigned*)p;
    unsigned seen = peek(word), expected;
    do {
      expected = seen;
      seen = atomicCAS(word, expected, to_bits(combine<OP>(from_bits<T>(expected), v)));
    } while (seen != expected);
    return from_bits<T>(seen);
  } else {
    int byte = (int)((unsigned long long)p & 3), shift = byte * 8;
    unsigned* word = (unsigned*)((char*)p - byte);
    unsigned mask = (1u << 8 * sizeof(T)) - 1;
    unsigned seen = peek(word), expected;
    do {
      expected = seen;
      T old = from_bits<T>((typename Raw<sizeof(T)>::type)(expected >> shift & mask));
      unsigned next = (expected & ~(mask << shift)) | (unsigned)to_bits(combine<OP>(old, v)) << shift;
      seen = atomicCAS(word, expected, next);
    } while (seen != expected);
    return from_bits<T>((typename Raw<sizeof(T)>::type)(seen >> shift & mask));
  }
}
#define TW_ATOMIC(OP, T, CALL) \
  template <> TW_FN T atomic<OP, T>(T * p, T v) { return CALL; }
TW_ATOMIC(ADD, int, atomicAdd(p, v))
TW_ATOMIC(ADD, unsigned, atomicAdd(p, v))
TW_ATOMIC(ADD, unsigned long long, atomicAdd(p, v))
TW_ATOMIC(ADD, long long, (long long)atomicAdd((unsigned long long*)p, (unsigned long long)v))
TW_ATOMIC(ADD, float, atomicAdd(p, v))
TW_ATOMIC(ADD, double, atomicAdd(p, v))
TW_ATOMIC(MAX, int, atomicMax(p, v))
TW_ATOMIC(MAX, unsigned, atomicMax(p, v))
TW_ATOMIC(MAX, long long, atomicMax(p, v))
TW_ATOMIC(MAX, unsigned long long, atomicMax(p, v))
TW_ATOMIC(MIN, int, atomicMin(p, v))
TW_ATOMIC(MIN, unsigned, atomicMin(p, v))
TW_ATOMIC(MIN, long long, atomicMin(p, v))
TW_ATOMIC(MIN, unsigned long long, atomicMin(p, v))
TW_ATOMIC(OR, int, atomicOr(p, v))
TW_ATOMIC(OR, unsigned, atomicOr(p, v))
TW_ATOMIC(AND, int, atomicAnd(p, v))
TW_ATOMIC(AND, unsigned, atomicAnd(p, v))
TW_ATOMIC(XOR, int, atomicXor(p, v))
TW_ATOMIC(XOR, unsigned, atomicXor(p, v))
TW_ATOMIC(EXCHANGE, int, atomicExch(p, v))
TW_ATOMIC(EXCHANGE, unsigned, atomicExch(p, v))
TW_ATOMIC(EXCHANGE, unsigned long long, atomicExch(p, v))
TW_ATOMIC(EXCHANGE, float, atomicExch(p, v))
template <class T> TW_FN T atomic_load(const T* p) {
  return from_bits<T>(peek((const typename Raw<sizeof(T)>::type*)p));
}
template <class T> TW_FN void atomic_store(T* p, T v) {
  poke((typename Raw<sizeof(T)>::type*)p, to_bits(v));
}

}  // namespace tw
