namespace tw {

// fp8 on a machine that converts to the formats with one zero and one NaN. Their codes of half a
// number are the codes of the number here. What differs is put right: the sign of zero, and NaN.
// What is too large becomes the largest number.
TW_FN unsigned char fp8_code(float v, unsigned half) {
  unsigned code = v != v ? 0x7fu : half;
  return (unsigned char)(code | (__float_as_uint(v) >> 24 & 0x80u));
}

// The values of two codes in the upper bytes of the halves of a word.
// A float16 with the same exponent bits is the number divided by 256. Of all codes only the one of
// NaN is past the range of float16 when it is multiplied by 36000, and an infinity times zero is NaN.
typedef _Float16 Halves __attribute__((ext_vector_type(2)));
TW_FN Halves fp8_values(unsigned codes) {
  typedef short Shorts __attribute__((ext_vector_type(2)));
  Shorts shifted = __builtin_bit_cast(Shorts, codes) >> (short)1 & (short)0xbf80;
  Halves part = __builtin_bit_cast(Halves, shifted);
  Halves past = part * (_Float16)36000.0f;
  return __builtin_elementwise_fma(past, (Halves)(_Float16)0.0f, part * (_Float16)256.0f);
}

struct e4m3 {
  unsigned char bits;
  e4m3() = default;
  TW_FN explicit e4m3(float v) {
    float half = __builtin_amdgcn_fmed3f(v * 0.5f, -224.0f, 224.0f);
    bits = fp8_code(v, __builtin_amdgcn_cvt_pk_fp8_f32(half, 0.0f, 0, false));
  }
  TW_FN operator float() const { return (float)fp8_values((unsigned)bits << 8)[0]; }
};

// The upper half of a float16.
struct e5m2 {
  unsigned char bits;
  e5m2() = default;
  TW_FN explicit e5m2(float v) {
    float half = __builtin_amdgcn_fmed3f(v * 0.5f, -28672.0f, 28672.0f);
    bits = fp8_code(v, __builtin_amdgcn_cvt_pk_bf8_f32(half, 0.0f, 0, false));
  }
  TW_FN operator float() const {
    return (float)__builtin_bit_cast(_Float16, (unsigned short)(bits << 8));
  }
};

}  // namespace tw
