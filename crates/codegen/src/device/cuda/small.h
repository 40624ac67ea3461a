namespace tw {

// Which codes of a small float are not finite numbers.
enum Specials { IEEE_SATURATING, ALL_ONES_NAN, NEGATIVE_ZERO_NAN, NO_SPECIALS };

// Floats of at most eight bits, in software: sign, E bits of exponent, M of mantissa.
// Conversion rounds to nearest even and saturates.
template <int E, int M, int BIAS, Specials SPECIALS> struct Small {
  static constexpr unsigned SIGN = 1u << (E + M);
  static constexpr unsigned MAGNITUDE = SIGN - 1;
  static constexpr unsigned INFINITE = MAGNITUDE & ~((1u << M) - 1);
  static constexpr unsigned LARGEST = SPECIALS == IEEE_SATURATING ? INFINITE - 1
                                      : SPECIALS == ALL_ONES_NAN  ? MAGNITUDE - 1
                                                                  : MAGNITUDE;
  static TW_FN unsigned encode(float v) {
    unsigned bits = __float_as_uint(v);
    unsigned sign = bits >> 31 ? SIGN : 0;
    unsigned magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
      return SPECIALS == NEGATIVE_ZERO_NAN ? SIGN
             : SPECIALS == NO_SPECIALS     ? LARGEST
                                           : sign | MAGNITUDE;
    }
    unsigned code;
    if (magnitude < (unsigned)(128 - BIAS) << 23) {
      // Below the smallest normal number codes are multiples of the smallest one.
      code = __float2uint_rn(__uint_as_float(magnitude) *
                             __uint_as_float((unsigned)(127 + BIAS - 1 + M) << 23));
    } else {
      unsigned odd = magnitude >> (23 - M) & 1;
      unsigned rounded = magnitude + (1u << (22 - M)) - 1 + odd;
      code = (rounded >> (23 - M)) - ((unsigned)(127 - BIAS) << M);
    }
    code = code > LARGEST ? LARGEST : code;
    return SPECIALS == NEGATIVE_ZERO_NAN && code == 0 ? 0 : sign | code;
  }
  static TW_FN float decode(unsigned code) {
    unsigned magnitude = code & MAGNITUDE;
    float size = __uint_as_float(magnitude << (23 - M)) *
                 __uint_as_float((unsigned)(254 - BIAS) << 23);
    // Behind the product: as a part of it clang 22 would lose the sign of a zero that becomes float16.
    float v = __uint_as_float(__float_as_uint(size) | (code & SIGN) << (31 - E - M));
    if (SPECIALS == IEEE_SATURATING && magnitude >= INFINITE) {
      v = magnitude == INFINITE ? v * inf() : nan();
    }
    if (SPECIALS == ALL_ONES_NAN && magnitude == MAGNITUDE) v = nan();
    if (SPECIALS == NEGATIVE_ZERO_NAN && code == SIGN) v = nan();
    return v;
  }
};

#define TW_SMALL_FLOAT(NAME, E, M, BIAS, SPECIALS)                       \
  struct NAME {                                                          \
    unsigned char bits;                                                  \
    typedef Small<E, M, BIAS, SPECIALS> Format;                          \
    NAME() = default;                                                    \
    TW_FN explicit NAME(float v) : bits((unsigned char)Format::encode(v)) {} \
    TW_FN operator float() const { return Format::decode(bits); }        \
  };
TW_SMALL_FLOAT(e2m3, 2, 3, 1, NO_SPECIALS)
TW_SMALL_FLOAT(e3m2, 3, 2, 3, NO_SPECIALS)
TW_SMALL_FLOAT(e2m1, 2, 1, 1, NO_SPECIALS)
template <> struct Element<e2m3> { static constexpr int width = 6; };
template <> struct Element<e3m2> { static constexpr int width = 6; };
template <> struct Element<e2m1> { static constexpr int width = 4; };

// Powers of two from 2^-127; zero, negative and smaller values become 2^-127.
struct e8m0 {
  unsigned char bits;
  e8m0() = default;
  TW_FN explicit e8m0(float v) {
    unsigned magnitude = __float_as_uint(v) & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { bits = 0xff; return; }
    if (!(v > 0.0f)) { bits = 0; return; }
    // The nearest power of two, of two that are as near the larger one.
    unsigned exponent = magnitude >> 23, fraction = magnitude & 0x7fffffu;
    if (exponent == 0) { bits = fraction >= 0x600000u; return; }
    exponent += fraction >= 0x400000u;
    bits = exponent > 254 ? 254 : exponent;
  }
  TW_FN operator float() const {
    return bits == 0xff ? nan() : bits == 0 ? __uint_as_float(0x400000u) : __uint_as_float((unsigned)bits << 23);
  }
};

}  // namespace tw
