namespace tw {

// float16. Arithmetic is done on the float32 value and rounded back, which gives the correctly
// rounded result of + - * / and sqrt.
struct f16 {
  unsigned short bits;
  f16() = default;
  TW_FN explicit f16(float v) : bits(__builtin_bit_cast(unsigned short, (_Float16)v)) {}
  TW_FN operator float() const { return (float)__builtin_bit_cast(_Float16, bits); }
};

}  // namespace tw
