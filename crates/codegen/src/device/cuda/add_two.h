namespace tw {

// Adds to neighbours in global memory in one operation, each atomic on its own. The address is a
// multiple of all of them.
TW_FN void atomic_add(HALF* p, HALF a, HALF b) {
  asm volatile("red.relaxed.gpu.global.add.noftz.HALFx2 [%0], %1;"
               :: "l"(__cvta_generic_to_global(p)), "r"((unsigned)b.bits << 16 | a.bits) : "memory");
}

}  // namespace tw
