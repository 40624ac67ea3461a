namespace tw {

// Mathematical functions of float64 on the machine's own operations, for there is no device
// library. Errors are a few units in the last place, with these exceptions: `pow` loses as many
// bits as the exponent of its result has, sine and cosine lose accuracy from 2^20 on.
TW_FN double make64(unsigned long long bits) { return __builtin_bit_cast(double, bits); }
TW_FN double inf64() { return make64(0x7ff0000000000000ull); }
TW_FN double nan64() { return make64(0x7ff8000000000000ull); }
TW_FN double fabs(double x) { return __builtin_fabs(x); }
TW_FN double sqrt(double x) { return __builtin_sqrt(x); }

// e^r - 1 for |r| <= ln(2) / 2, by its series.
TW_FN double expm1_series(double r) {
  double p = 1.0 / 87178291200.0;
  p = __builtin_fma(p, r, 1.0 / 6227020800.0);
  p = __builtin_fma(p, r, 1.0 / 479001600.0);
  p = __builtin_fma(p, r, 1.0 / 39916800.0);
  p = __builtin_fma(p, r, 1.0 / 3628800.0);
  p = __builtin_fma(p, r, 1.0 / 362880.0);
  p = __builtin_fma(p, r, 1.0 / 40320.0);
  p = __builtin_fma(p, r, 1.0 / 5040.0);
  p = __builtin_fma(p, r, 1.0 / 720.0);
  p = __builtin_fma(p, r, 1.0 / 120.0);
  p = __builtin_fma(p, r, 1.0 / 24.0);
  p = __builtin_fma(p, r, 1.0 / 6.0);
  p = __builtin_fma(p, r, 0.5);
  return __builtin_fma(p * r, r, r);
}
// 2^n e^r, n an integer.
TW_FN double scaled_exp(double n, double r) {
  return __builtin_ldexp(1.0 + expm1_series(r), (int)n);
}
// e^(x + low), low much smaller than x.
TW_FN double exp_of_sum(double x, double low) {
  if (x != x) return x;
  if (x > 709.8) return inf64();
  if (x < -745.2) return 0.0;
  double n = __builtin_rint(x * 1.4426950408889634);
  double r = __builtin_fma(n, -0x1.62e42fefa0000p-1, x);
  return scaled_exp(n, __builtin_fma(n, -0x1.cf79abc9e3b3ap-40, r) + low);
}
TW_FN double exp(double x) { return exp_of_sum(x, 0.0); }
TW_FN double exp2(double x) {
  if (x != x) return x;
  if (x >= 1024.0) return inf64();
  if (x < -1075.0) return 0.0;
  double n = __builtin_rint(x);
  return scaled_exp(n, (x - n) * 0.6931471805599453);
}
TW_FN double exp10(double x) {
  double high = x * 2.302585092994046;
  double low = __builtin_fma(x, 2.302585092994046, -high) + x * -2.1707562233822494e-16;
  return exp_of_sum(high, fabs(x) < 400.0 ? low : 0.0);
}
TW_FN double expm1(double x) { return fabs(x) < 0.34 ? expm1_series(x) : exp(x) - 1.0; }

// ln of x, as an exponent of 2 and the logarithm of a number between sqrt(1/2) and sqrt(2).
TW_FN double log_parts(double x, double& exponent) {
  double m = __builtin_amdgcn_frexp_mant(x);
  int e = __builtin_amdgcn_frexp_exp(x);
  if (m < 0.7071067811865476) { m *= 2.0; e -= 1; }
  exponent = e;
  double s = (m - 1.0) / (m + 1.0), q = s * s;
  double p = 1.0 / 23.0;
  for (int d = 21; d >= 3; d -= 2) p = __builtin_fma(p, q, 1.0 / d);
  return __builtin_fma(2.0 * s * q, p, 2.0 * s);
}
TW_FN double log_special(double x) { return x < 0.0 || x != x ? nan64() : x == 0.0 ? -inf64() : x; }
TW_FN double log(double x) {
  if (!(x > 0.0 && x < inf64())) return log_special(x);
  double e, p = log_parts(x, e);
  return __builtin_fma(e, 0x1.62e42fefa0000p-1, __builtin_fma(e, 0x1.cf79abc9e3b3ap-40, p));
}
TW_FN double log2(double x) {
  if (!(x > 0.0 && x < inf64())) return log_special(x);
  double e, p = log_parts(x, e);
  return __builtin_fma(p, 1.4426950408889634, e);
}
TW_FN double log10(double x) {
  if (!(x > 0.0 && x < inf64())) return log_special(x);
  double e, p = log_parts(x, e);
  return __builtin_fma(e, 0.30102999566398120, p * 0.4342944819032518);
}
TW_FN double log1p(double x) {
  double u = 1.0 + x;
  return u == 1.0 || !(u > 0.0 && u < inf64()) ? (u == 1.0 ? x : log_special(u)) : log(u) * (x / (u - 1.0));
}

// Sine or cosine of a quarter turn's worth: r in [-pi/4, pi/4].
TW_FN double sin_series(double r) {
  double q = r * r, p = 1.0 / 355687428096000.0;
  p = __builtin_fma(p, q, -1.0 / 1307674368000.0);
  p = __builtin_fma(p, q, 1.0 / 6227020800.0);
  p = __builtin_fma(p, q, -1.0 / 39916800.0);
  p = __builtin_fma(p, q, 1.0 / 362880.0);
  p = __builtin_fma(p, q, -1.0 / 5040.0);
  p = __builtin_fma(p, q, 1.0 / 120.0);
  p = __builtin_fma(p, q, -1.0 / 6.0);
  return __builtin_fma(p * q, r, r);
}
TW_FN double cos_series(double r) {
  double q = r * r, p = 1.0 / 20922789888000.0;
  p = __builtin_fma(p, q, -1.0 / 87178291200.0);
  p = __builtin_fma(p, q, 1.0 / 479001600.0);
  p = __builtin_fma(p, q, -1.0 / 3628800.0);
  p = __builtin_fma(p, q, 1.0 / 40320.0);
  p = __builtin_fma(p, q, -1.0 / 720.0);
  p = __builtin_fma(p, q, 1.0 / 24.0);
  return __builtin_fma(__builtin_fma(p, q, -0.5), q, 1.0);
}
TW_FN double sin_of_turns(double x, int quarter) {
  if (!(fabs(x) < inf64())) return nan64();
  double n = __builtin_rint(x * 0.6366197723675814);
  double r = __builtin_fma(n, -0x1.921fb54400000p+0, x);
  r = __builtin_fma(n, -0x1.0b4611a600000p-34, r);
  r = __builtin_fma(n, -0x1.3198a2e037073p-69, r);
  int q = ((int)__builtin_fma(-4.0, __builtin_floor(n * 0.25), n) + quarter) & 3;
  double v = q & 1 ? cos_series(r) : sin_series(r);
  return q & 2 ? -v : v;
}
TW_FN double sin(double x) { return sin_of_turns(x, 0); }
TW_FN double cos(double x) { return sin_of_turns(x, 1); }
TW_FN double tan(double x) { return sin(x) / cos(x); }

TW_FN double atan(double x) {
  double a = fabs(x);
  bool steep = a > 1.0;
  double t = steep ? 1.0 / a : a;
  // Twice the angle of half of it, twice.
  t = t / (1.0 + sqrt(1.0 + t * t));
  t = t / (1.0 + sqrt(1.0 + t * t));
  double q = t * t, p = 1.0 / 27.0;
  for (int d = 25; d >= 3; d -= 2) p = 1.0 / d - q * p;
  double angle = 4.0 * (t - t * q * p);
  angle = steep ? 1.5707963267948966 - angle : angle;
  return __builtin_copysign(x != x ? x : angle, x);
}
TW_FN double atan2(double y, double x) {
  if (x != x || y != y) return nan64();
  double a = fabs(x), b = fabs(y);
  double angle = a == 0.0 && b == 0.0 ? 0.0 : a == b ? 0.7853981633974483 : b > a ? 1.5707963267948966 - atan(a / b) : atan(b / a);
  bool left = __builtin_bit_cast(long long, x) < 0;
  return __builtin_copysign(left ? 3.141592653589793 - angle : angle, y);
}
TW_FN double asin(double x) { return fabs(x) <= 1.0 ? atan2(x, sqrt((1.0 - x) * (1.0 + x))) : nan64(); }
TW_FN double acos(double x) { return fabs(x) <= 1.0 ? atan2(sqrt((1.0 - x) * (1.0 + x)), x) : nan64(); }
TW_FN double sinh(double x) {
  double a = fabs(x), e = expm1(a);
  double v = a > 40.0 ? 0.5 * exp(0.5 * a) * exp(0.5 * a) : 0.5 * (e + e / (e + 1.0));
  return __builtin_copysign(v, x);
}
TW_FN double cosh(double x) {
  double a = fabs(x), e = exp(0.5 * a);
  return a > 40.0 ? 0.5 * e * e : 0.5 * (exp(a) + exp(-a));
}
TW_FN double tanh(double x) {
  double a = fabs(x), e = expm1(2.0 * a);
  return __builtin_copysign(a > 20.0 ? 1.0 : x != x ? x : e / (e + 2.0), x);
}
TW_FN double asinh(double x) {
  double a = fabs(x);
  double v = a > 0x1p28 ? log(a) + 0.6931471805599453 : log1p(a + a * a / (1.0 + sqrt(a * a + 1.0)));
  return __builtin_copysign(v, x);
}
TW_FN double acosh(double x) {
  double t = x - 1.0;
  return x > 0x1p28 ? log(x) + 0.6931471805599453 : t >= 0.0 ? log1p(t + sqrt(t * (t + 2.0))) : nan64();
}
TW_FN double atanh(double x) {
  double a = fabs(x);
  return __builtin_copysign(0.5 * log1p(2.0 * a / (1.0 - a)), x);
}
// A series of positive terms up to 3, then a continued fraction; it is 1 in float64 from 6 on.
TW_FN double erf(double x) {
  double a = fabs(x);
  if (x != x) return x;
  double v = 1.0;
  if (a < 3.0) {
    double term = a, sum = a;
    for (int n = 1; n < 64; ++n) {
      term *= 2.0 * a * a / (2 * n + 1);
      sum += term;
    }
    v = 1.1283791670955126 * exp(-a * a) * sum;
  } else if (a < 6.0) {
    double tail = a;
    for (int n = 40; n > 0; --n) tail = a + 0.5 * n / tail;
    v = 1.0 - 0.5641895835477563 * exp(-a * a) / tail;
  }
  return __builtin_copysign(v, x);
}
TW_FN double pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x != x || y != y) return nan64();
  bool whole = __builtin_trunc(y) == y;
  bool odd = whole && fabs(y) < 0x1p53 && __builtin_trunc(0.5 * y) != 0.5 * y;
  bool negative = __builtin_bit_cast(long long, x) < 0;
  double a = fabs(x), v;
  if (a == 0.0 || a == inf64()) {
    v = (a == 0.0) == (y > 0.0) ? 0.0 : inf64();
  } else if (fabs(y) == inf64()) {
    v = a == 1.0 ? 1.0 : (a > 1.0) == (y > 0.0) ? inf64() : 0.0;
  } else {
    if (negative && !whole) return nan64();
    double l = log(a), high = y * l;
    v = exp_of_sum(high, fabs(high) < 800.0 ? __builtin_fma(y, l, -high) : 0.0);
  }
  return negative && odd ? -v : v;
}
TW_FN double fmod(double x, double y) {
  double a = fabs(x), b = fabs(y);
  if (!(a < inf64()) || b == 0.0 || y != y) return nan64();
  if (b == inf64()) return x;
  // Long division: the divisor shifted down bit by bit, each difference exact.
  for (int n = __builtin_amdgcn_frexp_exp(a) - __builtin_amdgcn_frexp_exp(b); n >= 0 && a >= b; --n) {
    double part = __builtin_ldexp(b, n);
    if (a >= part) a -= part;
  }
  return __builtin_copysign(a, x);
}
TW_FN double hypot(double x, double y) {
  double a = fabs(x), b = fabs(y);
  if (a == inf64() || b == inf64()) return inf64();
  int e = __builtin_amdgcn_frexp_exp(a > b ? a : b);
  a = __builtin_ldexp(a, -e);
  b = __builtin_ldexp(b, -e);
  return __builtin_ldexp(sqrt(__builtin_fma(a, a, b * b)), e);
}

}  // namespace tw
