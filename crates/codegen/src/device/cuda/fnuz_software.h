namespace tw {

TW_SMALL_FLOAT(e4m3fnuz, 4, 3, 8, NEGATIVE_ZERO_NAN)
TW_SMALL_FLOAT(e5m2fnuz, 5, 2, 16, NEGATIVE_ZERO_NAN)

}  // namespace tw
