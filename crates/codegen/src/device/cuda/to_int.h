namespace tw {

// Floats to integers: toward zero, saturating, NaN to zero.
TW_FN int to_int(float v) { return v != v ? 0 : __float2int_rz(v); }
TW_FN int to_int(double v) { return v != v ? 0 : __double2int_rz(v); }
TW_FN unsigned to_uint(float v) { return v != v ? 0 : __float2uint_rz(v); }
TW_FN unsigned to_uint(double v) { return v != v ? 0 : __double2uint_rz(v); }
TW_FN long long to_int64(float v) { return v != v ? 0 : __float2ll_rz(v); }
TW_FN long long to_int64(double v) { return v != v ? 0 : __double2ll_rz(v); }
TW_FN unsigned long long to_uint64(float v) { return v != v || v < 0 ? 0 : __float2ull_rz(v); }
TW_FN unsigned long long to_uint64(double v) { return v != v || v < 0 ? 0 : __double2ull_rz(v); }
// To a narrower integer type, with its range.
template <int LOW, int HIGH, class F> TW_FN int to_narrow(F v) {
  int i = to_int(v);
  return i < LOW ? LOW : i > HIGH ? HIGH : i;
}

}  // namespace tw
