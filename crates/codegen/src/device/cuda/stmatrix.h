namespace tw {

// The reverse of ldmatrix (sm_90).
#define TW_STMATRIX(NAME, TRANS)                                                                       \
  template <int COUNT, class T> TW_FN void NAME(T* base, int i, const unsigned* r) {                   \
    unsigned a = shared_address(base, i);                                                              \
    if constexpr (COUNT == 4)                                                                          \
      asm volatile("stmatrix.sync.aligned.m8n8.x4" TRANS ".shared.b16 [%0], {%1, %2, %3, %4};"         \
                   ::"r"(a), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");                   \
    else if constexpr (COUNT == 2)                                                                     \
      asm volatile("stmatrix.sync.aligned.m8n8.x2" TRANS ".shared.b16 [%0], {%1, %2};"                 \
                   ::"r"(a), "r"(r[0]), "r"(r[1]) : "memory");                                         \
    else                                                                                               \
      asm volatile("stmatrix.sync.aligned.m8n8.x1" TRANS ".shared.b16 [%0], {%1};"                     \
                   ::"r"(a), "r"(r[0]) : "memory");                                                    \
  }
TW_STMATRIX(stmatrix, "")
TW_STMATRIX(stmatrix_trans, ".trans")

}  // namespace tw
