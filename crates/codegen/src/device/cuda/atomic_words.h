namespace tw {

// A word as other threads left it, and for them to see.
template <class T> TW_FN T peek(const T* p) { return *(const volatile T*)p; }
template <class T> TW_FN void poke(T* p, T v) { *(volatile T*)p = v; }

}  // namespace tw
