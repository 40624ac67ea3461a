namespace tw {

// Of the two elements of a word one has -0 added to it, which changes no number.
template <> TW_FN HALF atomic<ADD, HALF>(HALF* p, HALF v) {
  int byte = (int)((unsigned long long)p & 2), shift = byte * 8;
  unsigned old = add_word((HALF*)((char*)p - byte), (unsigned)v.bits << shift | 0x8000u << (16 - shift));
  return from_bits<HALF>((unsigned short)(old >> shift));
}

}  // namespace tw
