namespace tw {

// Division that rounds down, and the remainder with the divisor's sign.
template <class T> TW_FN T floor_div(T a, T b) {
  T q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
template <class T> TW_FN T floor_mod(T a, T b) {
  T r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
// Arithmetic on data wraps.
TW_FN int wrap_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
TW_FN int wrap_sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
TW_FN int wrap_mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
TW_FN int wrap_shl(int a, int b) { return (int)((unsigned)a << b); }
typedef unsigned long long Wide;
TW_FN long long wrap_add(long long a, long long b) { return (long long)((Wide)a + (Wide)b); }
TW_FN long long wrap_sub(long long a, long long b) { return (long long)((Wide)a - (Wide)b); }
TW_FN long long wrap_mul(long long a, long long b) { return (long long)((Wide)a * (Wide)b); }
TW_FN long long wrap_shl(long long a, long long b) { return (long long)((Wide)a << b); }
template <class T> TW_FN T min(T a, T b) { return b < a ? b : a; }
template <class T> TW_FN T max(T a, T b) { return a < b ? b : a; }
template <class T> TW_FN T abs(T a) { return a < 0 ? (T)(0 - (Wide)a) : a; }

}  // namespace tw
