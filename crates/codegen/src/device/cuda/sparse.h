// Metadata that has its places in rising order; compilers before CUDA 12.5 have no word for it.
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1205
#define TW_SPARSE "mma.sp::ordered_metadata.sync.aligned."
#else
#define TW_SPARSE "mma.sp.sync.aligned."
#endif

namespace tw {

// Of two words, the halves that this lane's place among four has: the lower ones of the even lanes.
TW_FN unsigned own_halves(unsigned first, unsigned second) {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return __byte_perm(first, second, lane & 1 ? 0x7632 : 0x5410);
}

}  // namespace tw
