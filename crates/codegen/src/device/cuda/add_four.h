namespace tw {

TW_FN void atomic_add(HALF* p, HALF a, HALF b, HALF c, HALF d) {
  asm volatile("red.relaxed.gpu.global.add.noftz.v2.HALFx2 [%0], {%1, %2};"
               :: "l"(__cvta_generic_to_global(p)), "r"((unsigned)b.bits << 16 | a.bits),
                  "r"((unsigned)d.bits << 16 | c.bits) : "memory");
}

}  // namespace tw
