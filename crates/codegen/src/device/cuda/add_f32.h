namespace tw {

// Adds to neighbours in global memory in one operation, each atomic on its own. The address is a
// multiple of all of them.
TW_FN void atomic_add(float* p, float a, float b) {
  asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};"
               :: "l"(__cvta_generic_to_global(p)), "f"(a), "f"(b) : "memory");
}
TW_FN void atomic_add(float* p, float a, float b, float c, float d) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
               :: "l"(__cvta_generic_to_global(p)), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}

}  // namespace tw
