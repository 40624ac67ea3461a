namespace tw {

TW_FP8(e4m3, fp8, 448.0f)
TW_FP8(e5m2, bf8, 57344.0f)

}  // namespace tw
