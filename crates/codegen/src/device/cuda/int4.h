namespace tw {

// Integers of four bits; they wrap.
struct i4 {
  signed char value;
  i4() = default;
  TW_FN explicit i4(int v) : value((signed char)((signed char)(v << 4) >> 4)) {}
  TW_FN operator int() const { return value; }
};
struct u4 {
  unsigned char value;
  u4() = default;
  TW_FN explicit u4(int v) : value((unsigned char)(v & 15)) {}
  TW_FN operator int() const { return value; }
};
template <> struct Element<i4> { static constexpr int width = 4; };
template <> struct Element<u4> { static constexpr int width = 4; };
template <> TW_FN i4 from_bits<i4>(unsigned char bits) { return i4(bits); }
template <> TW_FN u4 from_bits<u4>(unsigned char bits) { return u4(bits); }

}  // namespace tw
