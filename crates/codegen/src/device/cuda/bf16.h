namespace tw {

// bfloat16: the upper half of a float32.
struct bf16 {
  unsigned short bits;
  bf16() = default;
  TW_FN explicit bf16(float v) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(v)); }
  TW_FN operator float() const { return __uint_as_float((unsigned)bits << 16); }
  // Of a value that needs no rounding.
  static TW_FN bf16 exact(float v) {
    return from_bits<bf16>((unsigned short)(__float_as_uint(v) >> 16));
  }
};

}  // namespace tw
