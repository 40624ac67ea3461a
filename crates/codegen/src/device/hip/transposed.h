namespace tw {

// Groups of 16 lanes read 8 bytes each from LDS, together the rows of a tile of 16 columns; each
// lane gets a column (gfx950).
template <int BITS> TW_FN void read_transposed(unsigned* regs, const void* from) {
  typedef __attribute__((ext_vector_type(2))) int Words;
  typedef __attribute__((ext_vector_type(4))) short Halves;
  Words v;
  if constexpr (BITS == 16)
    v = __builtin_bit_cast(Words, __builtin_amdgcn_ds_read_tr16_b64_v4i16(
                                      (__attribute__((address_space(3))) Halves*)(void*)from));
  else
    v = __builtin_amdgcn_ds_read_tr8_b64_v2i32((__attribute__((address_space(3))) Words*)(void*)from);
  regs[0] = (unsigned)v.x;
  regs[1] = (unsigned)v.y;
}

}  // namespace tw
