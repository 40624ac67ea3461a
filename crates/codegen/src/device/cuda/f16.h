namespace tw {

// float16. Arithmetic is done on the float32 value and rounded back, which gives the correctly
// rounded result of + - * / and sqrt.
struct f16 {
  unsigned short bits;
  f16() = default;
  TW_FN explicit f16(float v) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v)); }
  TW_FN operator float() const {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
    return v;
  }
};

}  // namespace tw
