namespace tw {

template <> TW_FN f16 atomic<ADD, f16>(f16* p, f16 v) {
  f16 old;
  asm volatile("atom.add.noftz.f16 %0, [%1], %2;" : "=h"(old.bits) : "l"(p), "h"(v.bits) : "memory");
  return old;
}

}  // namespace tw
