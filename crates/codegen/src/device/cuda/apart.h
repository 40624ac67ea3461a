namespace tw {

// COUNT elements of memory into a register array, from an element on, each APART behind the one before it.
template <int COUNT, int APART, class T> TW_FN void load_apart(T* regs, int at, const T* from) {
  T own[COUNT];
  load<COUNT * (int)sizeof(T)>(own, 0, from);
#pragma unroll
  for (int i = 0; i < COUNT; ++i) regs[at + i * APART] = own[i];
}
template <int COUNT, int APART, class T, int N>
TW_FN void load_apart(Regs<T, N>& regs, int at, const void* from) {
  Regs<T, COUNT> own;
  load<COUNT * Regs<T, N>::WIDTH / 8>(own, 0, from);
#pragma unroll
  for (int i = 0; i < COUNT; ++i) regs.set(at + i * APART, own[i]);
}

// The same of rows that come in turn, as many as share a register: the element of each behind that of the
// one before it.
template <int COUNT, int APART, class T, int N>
TW_FN void load_row(Regs<T, N>& regs, int at, const void* from) {
  typedef Regs<T, COUNT> Own;
  static_assert(APART % Own::PER_WORD == 0, "rows share no register");
  Own own;
  load<COUNT * Own::WIDTH / 8>(own, 0, from);
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
    put_row<Own::WIDTH>(*regs.at(at + i * APART), at % Own::PER_WORD, own.words[i / Own::PER_WORD],
                        i % Own::PER_WORD);
}

// The reverse.
template <int COUNT, int APART, class T> TW_FN void store_apart(T* to, const T* regs, int at) {
  T own[COUNT];
#pragma unroll
  for (int i = 0; i < COUNT; ++i) own[i] = regs[at + i * APART];
  store<COUNT * (int)sizeof(T)>(to, own, 0);
}
template <int COUNT, int APART, class T, int N>
TW_FN void store_apart(void* to, const Regs<T, N>& regs, int at) {
  Regs<T, COUNT> own = {};
#pragma unroll
  for (int i = 0; i < COUNT; ++i) own.set(i, regs[at + i * APART]);
  store<COUNT * Regs<T, N>::WIDTH / 8>(to, own, 0);
}

}  // namespace tw
