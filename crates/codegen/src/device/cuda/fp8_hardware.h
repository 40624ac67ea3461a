namespace tw {

// fp8 by the machine's conversions (sm_89 and later): to nearest even, saturating.
#define TW_FP8(NAME)                                                                  \
  struct NAME {                                                                       \
    unsigned char bits;                                                               \
    NAME() = default;                                                                 \
    TW_FN explicit NAME(float v) {                                                    \
      unsigned short pair;                                                            \
      asm("cvt.rn.satfinite." #NAME "x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(v)); \
      bits = (unsigned char)pair;                                                     \
    }                                                                                 \
    TW_FN operator float() const {                                                    \
      unsigned halves;                                                                \
      float v;                                                                        \
      asm("cvt.rn.f16x2." #NAME "x2 %0, %1;" : "=r"(halves) : "h"((unsigned short)bits)); \
      asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"((unsigned short)halves));             \
      return v;                                                                       \
    }                                                                                 \
  };
TW_FP8(e4m3)
TW_FP8(e5m2)

}  // namespace tw
