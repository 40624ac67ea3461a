#if defined(__gfx950__)
namespace tw {

// As a vector of two: one instruction rounds both, where the machine has it.
template <> TW_FN void insert<16>(unsigned& word, int place, unsigned bits) {
  typedef unsigned short Pair __attribute__((ext_vector_type(2)));
  Pair pair = bit_cast<Pair>(word);
  pair[place] = (unsigned short)bits;
  word = bit_cast<unsigned>(pair);
}

}  // namespace tw
#endif
