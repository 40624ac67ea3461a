namespace tw {

// Rows of 16 bytes of shared memory, spread over the warp: 1, 2 or 4 matrices of 8 rows. What a
// condition guards, the same for the whole warp, is guarded by a predicate.
#define TW_LDMATRIX(NAME, TRANS)                                                                       \
  template <int COUNT, class T> TW_FN void NAME(unsigned* r, const T* base, int i) {                   \
    unsigned a = shared_address(base, i);                                                              \
    if constexpr (COUNT == 4)                                                                          \
      asm volatile("ldmatrix.sync.aligned.m8n8.x4" TRANS ".shared.b16 {%0, %1, %2, %3}, [%4];"         \
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory");              \
    else if constexpr (COUNT == 2)                                                                     \
      asm volatile("ldmatrix.sync.aligned.m8n8.x2" TRANS ".shared.b16 {%0, %1}, [%2];"                 \
                   : "=r"(r[0]), "=r"(r[1]) : "r"(a) : "memory");                                      \
    else                                                                                               \
      asm volatile("ldmatrix.sync.aligned.m8n8.x1" TRANS ".shared.b16 {%0}, [%1];"                     \
                   : "=r"(r[0]) : "r"(a) : "memory");                                                  \
  }                                                                                                    \
  template <int COUNT, class T> TW_FN void NAME##_if(bool when, unsigned* r, const T* base, int i) {   \
    unsigned a = shared_address(base, i);                                                              \
    if constexpr (COUNT == 4)                                                                          \
      asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0;\n\t"                                          \
                   "@p ldmatrix.sync.aligned.m8n8.x4" TRANS ".shared.b16 {%0, %1, %2, %3}, [%4];}"     \
                   : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]) : "r"(a), "r"((int)when) : "memory");\
    else if constexpr (COUNT == 2)                                                                     \
      asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0;\n\t"                                          \
                   "@p ldmatrix.sync.aligned.m8n8.x2" TRANS ".shared.b16 {%0, %1}, [%2];}"             \
                   : "+r"(r[0]), "+r"(r[1]) : "r"(a), "r"((int)when) : "memory");                      \
    else                                                                                               \
      asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0;\n\t"                                          \
                   "@p ldmatrix.sync.aligned.m8n8.x1" TRANS ".shared.b16 {%0}, [%1];}"                 \
                   : "+r"(r[0]) : "r"(a), "r"((int)when) : "memory");                                  \
  }                                                                                                    \
  template <int COUNT, class T> TW_FN void NAME(float* r, const T* base, int i) {                      \
    unsigned words[COUNT];                                                                             \
    NAME<COUNT>(words, base, i);                                                                       \
    for (int w = 0; w < COUNT; ++w) r[w] = __uint_as_float(words[w]);                                  \
  }                                                                                                    \
  template <int COUNT, class T> TW_FN void NAME##_if(bool when, float* r, const T* base, int i) {      \
    unsigned words[COUNT];                                                                             \
    for (int w = 0; w < COUNT; ++w) words[w] = __float_as_uint(r[w]);                                  \
    NAME##_if<COUNT>(when, words, base, i);                                                            \
    for (int w = 0; w < COUNT; ++w) r[w] = __uint_as_float(words[w]);                                  \
  }
TW_LDMATRIX(ldmatrix, "")
TW_LDMATRIX(ldmatrix_trans, ".trans")

}  // namespace tw
