namespace tw {

// fp8 with one zero and one NaN, by the machine's conversions: to nearest even. What is too large is
// brought to the largest number first, for the machine would make it a NaN.
#define TW_FNUZ(NAME, WORD, LARGEST)                                                    \
  struct NAME {                                                                        \
    unsigned char bits;                                                                \
    NAME() = default;                                                                  \
    TW_FN explicit NAME(float v) {                                                     \
      float near = v != v ? v : __builtin_amdgcn_fmed3f(v, -LARGEST, LARGEST);         \
      bits = (unsigned char)__builtin_amdgcn_cvt_pk_##WORD##_f32(near, 0.0f, 0, false); \
    }                                                                                  \
    TW_FN operator float() const { return __builtin_amdgcn_cvt_f32_##WORD(bits, 0); }  \
  };
TW_FNUZ(e4m3fnuz, fp8, 240.0f)
TW_FNUZ(e5m2fnuz, bf8, 57344.0f)

}  // namespace tw
