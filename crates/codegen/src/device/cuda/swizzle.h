namespace tw {

// The index of a block when blocks go through panels of a few rows (or columns) back and forth.
template <int PANEL, bool BY_ROW> TW_FN void swizzle_blocks(int& bx, int& by) {
  int gx = gridDim.x, gy = gridDim.y;
  int along = BY_ROW ? gx : gy;
  int total = gx * gy, size = PANEL * along;
  int linear = blockIdx.x + blockIdx.y * gx;
  int panel = linear / size, offset = linear % size;
  bool last = panel + 1 >= (total + size - 1) / size;
  int stride = last ? (total - panel * size) / along : PANEL;
  int main = offset / stride;
  if (panel % 2 == 1) main = along - 1 - main;
  int cross = offset % stride + panel * PANEL;
  bx = BY_ROW ? main : cross;
  by = BY_ROW ? cross : main;
}

}  // namespace tw
