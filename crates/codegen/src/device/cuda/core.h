#define TW_FN __device__ __forceinline__

namespace tw {

// The same bits as another type of the same size.
template <class To, class From> TW_FN To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

// Unsigned integers by size, and the bits of values in the low part of a word.
template <int BYTES> struct Raw;
template <> struct Raw<1> { typedef unsigned char type; };
template <> struct Raw<2> { typedef unsigned short type; };
template <> struct Raw<4> { typedef unsigned type; };
template <> struct Raw<8> { typedef unsigned long long type; };
template <class T> struct Element { static constexpr int width = 8 * sizeof(T); };
template <class T> TW_FN typename Raw<sizeof(T)>::type to_bits(T v) {
  return bit_cast<typename Raw<sizeof(T)>::type>(v);
}
template <class T> TW_FN T from_bits(typename Raw<sizeof(T)>::type bits) { return bit_cast<T>(bits); }

TW_FN float inf() { return __int_as_float(0x7f800000); }
TW_FN float nan() { return __int_as_float(0x7fffffff); }

// A float64 or integer as the float32 from which every narrower type rounds as it should:
// what does not fit is made odd in the last place, so a second rounding sees no false tie.
TW_FN float odd(double v) {
  float down = __double2float_rz(v);
  bool exact = (double)down == v || v != v;
  return exact ? down : __int_as_float(__float_as_int(down) | 1);
}
TW_FN float odd(int v) { return odd((double)v); }
TW_FN float odd(unsigned v) { return odd((double)v); }
TW_FN float odd(long long v) {
  float down = __ll2float_rz(v);
  bool exact = __float2ll_rz(down) == v;
  return exact ? down : __int_as_float(__float_as_int(down) | 1);
}
TW_FN float odd(unsigned long long v) {
  float down = __ull2float_rz(v);
  bool exact = __float2ull_rz(down) == v;
  return exact ? down : __int_as_float(__float_as_int(down) | 1);
}

}  // namespace tw
