namespace tw {

// Elements of six bits, as many as whole BYTES: memory is aligned to the largest power of two that
// divides these, and moved in pieces of that.
template <int BYTES> struct Run {
  static constexpr int PIECE = (BYTES & -BYTES) > 16 ? 16 : (BYTES & -BYTES);
  static constexpr int COUNT = BYTES / PIECE;
  typedef typename Vector<PIECE>::type Words;
};
template <int BYTES, class T, int N> TW_FN void load_run(Regs<T, N>& regs, int at, const void* from) {
  typedef Run<BYTES> R;
#pragma unroll
  for (int i = 0; i < R::COUNT; ++i) {
    typename R::Words v = fetch<R::PIECE>((const char*)from + i * R::PIECE);
    if constexpr (R::PIECE < 4) {
      regs.put_field(at * 6 + i * 8 * R::PIECE, 8 * R::PIECE, v);
    } else {
#pragma unroll
      for (int j = 0; j < R::PIECE / 4; ++j) regs.at(at)[i * R::PIECE / 4 + j] = word(v, j);
    }
  }
}
template <int BYTES, class T, int N> TW_FN void store_run(void* to, const Regs<T, N>& regs, int at) {
  typedef Run<BYTES> R;
#pragma unroll
  for (int i = 0; i < R::COUNT; ++i) {
    typename R::Words v;
    if constexpr (R::PIECE < 4) {
      v = (typename R::Words)regs.field(at * 6 + i * 8 * R::PIECE, 8 * R::PIECE);
    } else {
#pragma unroll
      for (int j = 0; j < R::PIECE / 4; ++j) put(v, j, regs.at(at)[i * R::PIECE / 4 + j]);
    }
    drop<R::PIECE>((char*)to + i * R::PIECE, v);
  }
}
template <int BYTES, class T> TW_FN void fill_run(void* to, T v) {
  Regs<T, BYTES / 3 * 4> all;
  fill<BYTES / 3 * 4>(all, 0, v);
  store_run<BYTES>(to, all, 0);
}
template <int BYTES> TW_FN void copy_run(void* to, const void* from) {
  typedef Run<BYTES> R;
  typename R::Words v[R::COUNT];
#pragma unroll
  for (int i = 0; i < R::COUNT; ++i) v[i] = fetch<R::PIECE>((const char*)from + i * R::PIECE);
#pragma unroll
  for (int i = 0; i < R::COUNT; ++i) drop<R::PIECE>((char*)to + i * R::PIECE, v[i]);
}

}  // namespace tw
