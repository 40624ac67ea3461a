namespace tw {

// A tensor of that many bytes as the machine's buffer instructions see it: reads past the end give
// zeros.
typedef __amdgpu_buffer_rsrc_t Tensor;
TW_FN Tensor tensor(const void* start, long long bytes) {
  int size = bytes > 0xffffffffll ? -1 : (int)bytes;
  return __builtin_amdgcn_make_buffer_rsrc(const_cast<void*>(start), 0, size, 0x00027000);
}

}  // namespace tw
