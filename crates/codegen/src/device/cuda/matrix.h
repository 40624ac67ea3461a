namespace tw {

// Rows of 16 bytes of shared memory, spread over the warp: 1, 2 or 4 matrices of 8 rows.
#define TW_LDMATRIX(NAME, TRANS)                                                                       \
  template <int COUNT> TW_FN void NAME(unsigned* r, const void* row) {                                 \
    unsigned a = (unsigned)__cvta_generic_to_shared(row);                                              \
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
  template <int COUNT> TW_FN void NAME(float* r, const void* row) {                                    \
    unsigned words[COUNT];                                                                             \
    NAME<COUNT>(words, row);                                                                           \
    for (int i = 0; i < COUNT; ++i) r[i] = __uint_as_float(words[i]);                                  \
  }
TW_LDMATRIX(ldmatrix, "")
TW_LDMATRIX(ldmatrix_trans, ".trans")

}  // namespace tw
