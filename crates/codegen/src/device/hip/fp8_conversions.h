namespace tw {

// fp8 by the machine's conversions: to nearest even. What is too large is brought to the largest
// number first, for the machine would make it a NaN or infinite.
#define TW_FP8(NAME, WORD, LARGEST)                                                     \
  struct NAME {                                                                        \
    unsigned char bits;                                                                \
    NAME() = default;                                                                  \
    TW_FN explicit NAME(float v) {                                                     \
      float near = v != v ? v : __builtin_amdgcn_fmed3f(v, -LARGEST, LARGEST);         \
      bits = (unsigned char)__builtin_amdgcn_cvt_pk_##WORD##_f32(near, 0.0f, 0, false); \
    }                                                                                  \
    TW_FN operator float() const { return __builtin_amdgcn_cvt_f32_##WORD(bits, 0); }  \
  };

}  // namespace tw
