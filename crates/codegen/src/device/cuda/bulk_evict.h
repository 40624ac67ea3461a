namespace tw {

// What the L2 cache lets go first where it needs room, and what last.
struct Policy { unsigned long long bits; };
#define TW_POLICY(NAME)                                                                        \
  TW_FN Policy NAME() {                                                                        \
    Policy policy;                                                                             \
    asm("createpolicy.fractional.L2::" #NAME ".b64 %0, 1.0;" : "=l"(policy.bits));             \
    return policy;                                                                             \
  }
TW_POLICY(evict_first)
TW_POLICY(evict_last)
TW_POLICY(evict_normal)

// Bulk copies that say so; indices come innermost first.
#define TW_COPY(WHAT, PLACES, BAR, BLOCKS, SHARED, ...)                                        \
  asm volatile("cp.async.bulk.tensor." WHAT ".L2::cache_hint " PLACES ";"                      \
               ::"r"(SHARED), "l"(&map), "r"(BAR), "l"(policy.bits), "h"((unsigned short)(BLOCKS)), \
               __VA_ARGS__ : "memory")
#define TW_EVICTING(DIMS, AT, INDICES, ...)                                                    \
  template <class T> TW_FN void tma_load(Policy policy, const T* to, int i, const TensorMap& map, \
                                         unsigned long long* bar, TW_LIST INDICES) {           \
    TW_COPY(DIMS ".shared::cluster.global.tile.mbarrier::complete_tx::bytes",                  \
            "[%0], [%1, {" AT "}], [%2], %3", mbarrier_address(bar), 0, shared_address(to, i), \
            __VA_ARGS__);                                                                      \
  }                                                                                            \
  template <class T> TW_FN void tma_multicast(Policy policy, unsigned short blocks, const T* to, int i, \
                                              const TensorMap& map, unsigned long long* bar,   \
                                              TW_LIST INDICES) {                               \
    TW_COPY(DIMS ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster", \
            "[%0], [%1, {" AT "}], [%2], %4, %3", mbarrier_address(bar), blocks,               \
            shared_address(to, i), __VA_ARGS__);                                               \
  }                                                                                            \
  template <class T> TW_FN void tma_store(Policy policy, const TensorMap& map, const T* from, int i, \
                                          TW_LIST INDICES) {                                   \
    TW_COPY(DIMS ".global.shared::cta.tile.bulk_group", "[%1, {" AT "}], [%0], %3", 0, 0,      \
            shared_address(from, i), __VA_ARGS__);                                             \
  }
#define TW_LIST(...) __VA_ARGS__
TW_EVICTING("1d", "%5", (int x), "r"(x))
TW_EVICTING("2d", "%5, %6", (int x, int y), "r"(x), "r"(y))
TW_EVICTING("3d", "%5, %6, %7", (int x, int y, int z), "r"(x), "r"(y), "r"(z))
TW_EVICTING("4d", "%5, %6, %7, %8", (int x, int y, int z, int u), "r"(x), "r"(y), "r"(z), "r"(u))
TW_EVICTING("5d", "%5, %6, %7, %8, %9", (int x, int y, int z, int u, int v), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v))

}  // namespace tw
