namespace tw {

// fp8 with one zero and one NaN.
TW_FP8(e4m3fnuz, fp8, 240.0f)
TW_FP8(e5m2fnuz, bf8, 57344.0f)

}  // namespace tw
