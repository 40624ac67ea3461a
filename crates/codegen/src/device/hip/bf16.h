namespace tw {

// bfloat16: the upper half of a float32. One instruction rounds it on gfx950, arithmetic on
// bits on gfx942; both to nearest even.
struct bf16 {
  unsigned short bits;
  bf16() = default;
  TW_FN explicit bf16(float v) : bits(__builtin_bit_cast(unsigned short, (__bf16)v)) {}
  TW_FN operator float() const { return __uint_as_float((unsigned)bits << 16); }
  // Of a value that needs no rounding.
  static TW_FN bf16 exact(float v) {
    return from_bits<bf16>((unsigned short)(__float_as_uint(v) >> 16));
  }
};

}  // namespace tw
