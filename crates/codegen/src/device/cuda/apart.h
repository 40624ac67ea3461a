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
