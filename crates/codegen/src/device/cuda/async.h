namespace tw {

// Global to shared without passing registers; complete after a commit and a wait.
template <int BYTES, class T> TW_FN void cp_async(const T* to, int i, const void* from) {
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to, i)), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to, i)), "l"(from), "n"(BYTES) : "memory");
  }
}
// The same where `when` holds, by a predicate: a branch would part the instructions around it.
template <int BYTES, class T> TW_FN void cp_async_if(bool when, const T* to, int i, const void* from) {
  if constexpr (BYTES == 16) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16;}"
                 ::"r"(shared_address(to, i)), "l"(from), "r"((int)when) : "memory");
  } else {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; @p cp.async.ca.shared.global [%0], [%1], %2;}"
                 ::"r"(shared_address(to, i)), "l"(from), "n"(BYTES), "r"((int)when) : "memory");
  }
}
// Zeros where `inside` does not hold.
template <int BYTES, class T> TW_FN void cp_async_or_zero(const T* to, int i, const void* from, bool inside) {
  int size = inside ? BYTES : 0;
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to, i)), "l"(from), "r"(size) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to, i)), "l"(from), "n"(BYTES), "r"(size) : "memory");
  }
}
template <int BYTES, class T>
TW_FN void cp_async_or_zero_if(bool when, const T* to, int i, const void* from, bool inside) {
  int size = inside ? BYTES : 0;
  if constexpr (BYTES == 16) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; @p cp.async.cg.shared.global [%0], [%1], 16, %2;}"
                 ::"r"(shared_address(to, i)), "l"(from), "r"(size), "r"((int)when) : "memory");
  } else {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %4, 0; @p cp.async.ca.shared.global [%0], [%1], %2, %3;}"
                 ::"r"(shared_address(to, i)), "l"(from), "n"(BYTES), "r"(size), "r"((int)when) : "memory");
  }
}
TW_FN void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int GROUPS> TW_FN void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory"); }

}  // namespace tw
