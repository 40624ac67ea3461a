namespace tw {

// Values of other lanes, of any type of at most eight bytes.
template <class T, class F> TW_FN T through_words(T v, F exchange) {
  if constexpr (sizeof(T) == 8) {
    unsigned long long bits = to_bits(v);
    unsigned low = exchange((unsigned)bits), high = exchange((unsigned)(bits >> 32));
    return from_bits<T>((unsigned long long)high << 32 | low);
  } else {
    return from_bits<T>((typename Raw<sizeof(T)>::type)exchange((unsigned)to_bits(v)));
  }
}
template <class T> TW_FN T shuffle_xor(unsigned mask, T v, int lane, int width) {
  return through_words(v, [=](unsigned w) { return __shfl_xor_sync(mask, w, lane, width); });
}
template <class T> TW_FN T shuffle_index(unsigned mask, T v, int lane, int width) {
  return through_words(v, [=](unsigned w) { return __shfl_sync(mask, w, lane, width); });
}
template <class T> TW_FN T shuffle_up(unsigned mask, T v, int by, int width) {
  return through_words(v, [=](unsigned w) { return __shfl_up_sync(mask, w, by, width); });
}
template <class T> TW_FN T shuffle_down(unsigned mask, T v, int by, int width) {
  return through_words(v, [=](unsigned w) { return __shfl_down_sync(mask, w, by, width); });
}
// Folds a value over the warp; each lane receives the result.
template <class T, class F> TW_FN T warp_fold(unsigned mask, T v, F fold) {
#pragma unroll
  for (int by = 16; by > 0; by /= 2) v = fold(v, shuffle_xor(mask, v, by, 32));
  return v;
}

}  // namespace tw
