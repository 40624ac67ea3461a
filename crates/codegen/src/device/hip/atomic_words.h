// Relaxed, in the device's memory or in LDS. A float addition is one instruction only where the
// compiler may take the memory for the device's own.
#define TW_ATOMIC_WORD(NAME, HOW, T)                                              \
  TW_FN T NAME(T* p, T v) {                                                       \
    [[clang::atomic(no_remote_memory, no_fine_grained_memory, ignore_denormal_mode)]] { \
      return HOW(p, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);                  \
    }                                                                             \
  }
#define TW_ATOMIC_INTEGERS(NAME, HOW)          \
  TW_ATOMIC_WORD(NAME, HOW, int)               \
  TW_ATOMIC_WORD(NAME, HOW, unsigned)          \
  TW_ATOMIC_WORD(NAME, HOW, long long)         \
  TW_ATOMIC_WORD(NAME, HOW, unsigned long long)
TW_ATOMIC_INTEGERS(atomicAdd, __scoped_atomic_fetch_add)
TW_ATOMIC_INTEGERS(atomicMax, __scoped_atomic_fetch_max)
TW_ATOMIC_INTEGERS(atomicMin, __scoped_atomic_fetch_min)
TW_ATOMIC_INTEGERS(atomicOr, __scoped_atomic_fetch_or)
TW_ATOMIC_INTEGERS(atomicAnd, __scoped_atomic_fetch_and)
TW_ATOMIC_INTEGERS(atomicXor, __scoped_atomic_fetch_xor)
TW_ATOMIC_INTEGERS(atomicExch, __scoped_atomic_exchange_n)
TW_ATOMIC_WORD(atomicAdd, __scoped_atomic_fetch_add, float)
TW_ATOMIC_WORD(atomicAdd, __scoped_atomic_fetch_add, double)
TW_FN float atomicExch(float* p, float v) {
  return __uint_as_float(atomicExch((unsigned*)p, __float_as_uint(v)));
}
template <class T> TW_FN T atomicCAS(T* p, T expected, T next) {
  __scoped_atomic_compare_exchange_n(p, &expected, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                     __MEMORY_SCOPE_DEVICE);
  return expected;
}

namespace tw {

// A word as other threads left it, and for them to see. These keep to the memory that a pointer is
// known to point to, which volatile accesses do not.
template <class T> TW_FN T peek(const T* p) {
  return __scoped_atomic_load_n(p, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
template <class T> TW_FN void poke(T* p, T v) {
  __scoped_atomic_store_n(p, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

}  // namespace tw
