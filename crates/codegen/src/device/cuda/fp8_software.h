namespace tw {

TW_SMALL_FLOAT(e4m3, 4, 3, 7, ALL_ONES_NAN)
TW_SMALL_FLOAT(e5m2, 5, 2, 15, IEEE_SATURATING)

}  // namespace tw
