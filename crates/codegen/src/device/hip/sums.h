namespace tw {

// Sums that have accumulation registers by number. These are no values of the compiler's, which knows
// neither that they are in use nor which wait states their matrix instructions need.
template <typename T> TW_FN T sum(int at) {
  T v;
  asm volatile("v_accvgpr_read_b32 %0, a[%c1]" : "=v"(v) : "i"(at));
  return v;
}
template <typename T> TW_FN void set_sum(int at, T v) {
  asm volatile("v_accvgpr_write_b32 a[%c0], %1" ::"i"(at), "v"(v));
}
// No value of the compiler's stays in an accumulation register across.
TW_FN void keep_sums() { asm volatile("" ::: ACCUMULATION_REGISTERS); }
// Until the longest matrix instruction has written its sum: 16 passes and four states more. No value of
// the compiler's stays in an accumulation register across.
TW_FN void settle_sums() {
  asm volatile("s_nop 15\n\ts_nop 4" ::: ACCUMULATION_REGISTERS);
}

}  // namespace tw
