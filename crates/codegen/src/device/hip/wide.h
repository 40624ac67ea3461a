namespace tw {

// As vectors, so that each is one instruction.
typedef unsigned Words2 __attribute__((ext_vector_type(2)));
typedef unsigned Words4 __attribute__((ext_vector_type(4)));
template <> TW_FN uint2 fetch<8>(const void* from) {
  Words2 v = *(const Words2*)from;
  return {v.x, v.y};
}
template <> TW_FN uint4 fetch<16>(const void* from) {
  Words4 v = *(const Words4*)from;
  return {v.x, v.y, v.z, v.w};
}
template <> TW_FN void drop<8>(void* to, uint2 v) { *(Words2*)to = Words2{v.x, v.y}; }
template <> TW_FN void drop<16>(void* to, uint4 v) { *(Words4*)to = Words4{v.x, v.y, v.z, v.w}; }

}  // namespace tw
