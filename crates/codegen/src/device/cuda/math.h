namespace tw {

// Mathematical functions of float32 and float64; narrower types go through float32. Powers of two of
// float32 are the machine's instruction, and zero below 2^-126: keeping what is smaller takes four
// instructions for one. Of min and max a NaN operand loses.
#define TW_MATH1(NAME, F32, F64)              \
  TW_FN float NAME(float x) { return F32; }   \
  TW_FN double NAME(double x) { return F64; }
TW_MATH1(exp, ::expf(x), ::exp(x))
TW_FN float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
TW_FN double exp2(double x) { return ::exp2(x); }
TW_MATH1(exp10, ::exp10f(x), ::exp10(x))
TW_MATH1(expm1, ::expm1f(x), ::expm1(x))
TW_MATH1(log, ::logf(x), ::log(x))
TW_MATH1(log2, ::log2f(x), ::log2(x))
TW_MATH1(log10, ::log10f(x), ::log10(x))
TW_MATH1(log1p, ::log1pf(x), ::log1p(x))
TW_MATH1(sqrt, ::sqrtf(x), ::sqrt(x))
TW_MATH1(rsqrt, ::rsqrtf(x), ::rsqrt(x))
TW_MATH1(recip, 1.0f / x, 1.0 / x)
TW_MATH1(sin, ::sinf(x), ::sin(x))
TW_MATH1(cos, ::cosf(x), ::cos(x))
TW_MATH1(tan, ::tanf(x), ::tan(x))
TW_MATH1(asin, ::asinf(x), ::asin(x))
TW_MATH1(acos, ::acosf(x), ::acos(x))
TW_MATH1(atan, ::atanf(x), ::atan(x))
TW_MATH1(sinh, ::sinhf(x), ::sinh(x))
TW_MATH1(cosh, ::coshf(x), ::cosh(x))
TW_MATH1(tanh, ::tanhf(x), ::tanh(x))
TW_MATH1(asinh, ::asinhf(x), ::asinh(x))
TW_MATH1(acosh, ::acoshf(x), ::acosh(x))
TW_MATH1(atanh, ::atanhf(x), ::atanh(x))
TW_MATH1(erf, ::erff(x), ::erf(x))
TW_MATH1(sigmoid, 1.0f / (1.0f + ::expf(-x)), 1.0 / (1.0 + ::exp(-x)))
TW_MATH1(floor, ::floorf(x), ::floor(x))
TW_MATH1(ceil, ::ceilf(x), ::ceil(x))
TW_MATH1(trunc, ::truncf(x), ::trunc(x))
TW_MATH1(round, ::rintf(x), ::rint(x))
TW_MATH1(round_away, ::roundf(x), ::round(x))
TW_MATH1(fabs, ::fabsf(x), ::fabs(x))
TW_FN bool isnan(float x) { return x != x; }
TW_FN bool isnan(double x) { return x != x; }
TW_FN bool isinf(float x) { return ::fabsf(x) == inf(); }
TW_FN bool isinf(double x) { return ::fabs(x) == (double)inf(); }
TW_FN bool isfinite(float x) { return ::fabsf(x) < inf(); }
TW_FN bool isfinite(double x) { return ::fabs(x) < (double)inf(); }
#define TW_MATH2(NAME, F32, F64)                      \
  TW_FN float NAME(float x, float y) { return F32; }  \
  TW_FN double NAME(double x, double y) { return F64; }
TW_MATH2(fmin, ::fminf(x, y), ::fmin(x, y))
TW_MATH2(fmax, ::fmaxf(x, y), ::fmax(x, y))
TW_MATH2(pow, ::powf(x, y), ::pow(x, y))
TW_MATH2(fmod, ::fmodf(x, y), ::fmod(x, y))
TW_MATH2(atan2, ::atan2f(x, y), ::atan2(x, y))
TW_MATH2(hypot, ::hypotf(x, y), ::hypot(x, y))
TW_MATH2(copysign, ::copysignf(x, y), ::copysign(x, y))
TW_MATH2(nextafter, ::nextafterf(x, y), ::nextafter(x, y))
TW_FN float ldexp(float x, int n) { return ::ldexpf(x, n); }
TW_FN double ldexp(double x, int n) { return ::ldexp(x, n); }
TW_FN float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
TW_FN double fma(double x, double y, double z) { return ::fma(x, y, z); }
// float32 rounded to the mantissa of tfloat32, to nearest even.
TW_FN float tf32(float v) {
  unsigned bits = __float_as_uint(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return v;
  return __uint_as_float((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);
}

}  // namespace tw
