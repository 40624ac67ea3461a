namespace tw {

// Address of shared memory as instructions take it.
TW_FN unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Global to shared without passing registers; complete after a commit and a wait.
template <int BYTES> TW_FN void cp_async(void* to, const void* from) {
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from), "n"(BYTES) : "memory");
  }
}
// The same where `inside` holds, zeros elsewhere.
template <int BYTES> TW_FN void cp_async_or_zero(void* to, const void* from, bool inside) {
  int size = inside ? BYTES : 0;
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(size) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from), "n"(BYTES), "r"(size) : "memory");
  }
}
TW_FN void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int GROUPS> TW_FN void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory"); }

}  // namespace tw
