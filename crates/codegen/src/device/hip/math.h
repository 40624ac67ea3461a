namespace tw {

// Mathematical functions of float32; narrower types go through float32. Powers of two are the
// machine's instruction, within one unit in the last place, and zero below 2^-126: keeping what is
// smaller takes six instructions for one. Other exponentials and logarithms are the compiler's
// expansions around the machine's instructions, within 2 units in the last place, square root and
// division are exact; the others are those of float64, rounded. Of min and max a NaN operand loses.
#define TW_MATH1(NAME, F32) \
  TW_FN float NAME(float x) { return F32; }
TW_MATH1(exp, __builtin_expf(x))
TW_MATH1(exp2, __builtin_amdgcn_exp2f(x))
TW_MATH1(exp10, __builtin_exp10f(x))
TW_MATH1(expm1, (float)expm1((double)x))
TW_MATH1(log, __builtin_logf(x))
TW_MATH1(log2, __builtin_log2f(x))
TW_MATH1(log10, __builtin_log10f(x))
TW_MATH1(log1p, (float)log1p((double)x))
TW_MATH1(sqrt, __builtin_sqrtf(x))
TW_MATH1(rsqrt, 1.0f / __builtin_sqrtf(x))
TW_MATH1(recip, 1.0f / x)
TW_MATH1(sin, (float)sin((double)x))
TW_MATH1(cos, (float)cos((double)x))
TW_MATH1(tan, (float)tan((double)x))
TW_MATH1(asin, (float)asin((double)x))
TW_MATH1(acos, (float)acos((double)x))
TW_MATH1(atan, (float)atan((double)x))
TW_MATH1(sinh, (float)sinh((double)x))
TW_MATH1(cosh, (float)cosh((double)x))
TW_MATH1(tanh, (float)tanh((double)x))
TW_MATH1(asinh, (float)asinh((double)x))
TW_MATH1(acosh, (float)acosh((double)x))
TW_MATH1(atanh, (float)atanh((double)x))
TW_MATH1(erf, (float)erf((double)x))
TW_MATH1(sigmoid, 1.0f / (1.0f + __builtin_expf(-x)))
TW_FN double rsqrt(double x) { return 1.0 / sqrt(x); }
TW_FN double recip(double x) { return 1.0 / x; }
TW_FN double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
TW_FN float fabs(float x) { return __builtin_fabsf(x); }
#define TW_ROUND(NAME, HOW)                                 \
  TW_FN float NAME(float x) { return __builtin_##HOW##f(x); } \
  TW_FN double NAME(double x) { return __builtin_##HOW(x); }
TW_ROUND(floor, floor)
TW_ROUND(ceil, ceil)
TW_ROUND(trunc, trunc)
TW_ROUND(round, rint)
TW_ROUND(round_away, round)
TW_FN bool isnan(float x) { return x != x; }
TW_FN bool isnan(double x) { return x != x; }
TW_FN bool isinf(float x) { return fabs(x) == inf(); }
TW_FN bool isinf(double x) { return fabs(x) == inf64(); }
TW_FN bool isfinite(float x) { return fabs(x) < inf(); }
TW_FN bool isfinite(double x) { return fabs(x) < inf64(); }
#define TW_MATH2(NAME, HOW)                                          \
  TW_FN float NAME(float x, float y) { return __builtin_##HOW##f(x, y); } \
  TW_FN double NAME(double x, double y) { return __builtin_##HOW(x, y); }
TW_MATH2(fmin, fmin)
TW_MATH2(fmax, fmax)
TW_MATH2(copysign, copysign)
TW_FN float pow(float x, float y) { return (float)pow((double)x, (double)y); }
TW_FN float fmod(float x, float y) { return (float)fmod((double)x, (double)y); }
TW_FN float atan2(float y, float x) { return (float)atan2((double)y, (double)x); }
TW_FN float hypot(float x, float y) { return (float)hypot((double)x, (double)y); }
template <class T> TW_FN T next_after(T x, T y) {
  typedef typename Raw<sizeof(T)>::type Bits;
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  if (x == 0) return __builtin_copysign(from_bits<T>((Bits)1), y);
  bool grows = (y > x) == (x > 0);
  return from_bits<T>((Bits)(to_bits(x) + (grows ? 1 : -1)));
}
TW_FN float nextafter(float x, float y) { return next_after(x, y); }
TW_FN double nextafter(double x, double y) { return next_after(x, y); }
TW_FN float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
TW_FN double ldexp(double x, int n) { return __builtin_ldexp(x, n); }
TW_FN float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TW_FN double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
// float32 rounded to the mantissa of tfloat32, to nearest even.
TW_FN float tf32(float v) {
  unsigned bits = __float_as_uint(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return v;
  return __uint_as_float((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);
}

}  // namespace tw
