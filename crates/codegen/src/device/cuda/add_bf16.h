namespace tw {

// Adds to neighbours in global memory in one operation, each atomic on its own. The address is a
// multiple of all of them.
TW_FN void atomic_add(bf16* p, bf16 a, bf16 b) {
  asm volatile("red.relaxed.gpu.global.add.noftz.bf16x2 [%0], %1;"
               :: "l"(__cvta_generic_to_global(p)), "r"((unsigned)b.bits << 16 | a.bits) : "memory");
}
TW_FN void atomic_add(bf16* p, bf16 a, bf16 b, bf16 c, bf16 d) {
  asm volatile("red.relaxed.gpu.global.add.noftz.v2.bf16x2 [%0], {%1, %2};"
               :: "l"(__cvta_generic_to_global(p)), "r"((unsigned)b.bits << 16 | a.bits),
                  "r"((unsigned)d.bits << 16 | c.bits) : "memory");
}

}  // namespace tw
