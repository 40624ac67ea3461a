// Blocks that have arrived at the grid's barrier; the highest bit flips when all have.
__device__ unsigned tw_grid_arrivals = 0;

namespace tw {

// A barrier of all blocks of the grid, which must all run at once. Every wave waits for what it
// wrote: the fence is that of the one that arrives for them.
TW_FN void sync_grid() {
  settle();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
    bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
    unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    unsigned step = first ? 0x80000000u - (blocks - 1) : 1;
    __threadfence();
    unsigned old = atomicAdd(&tw_grid_arrivals, step);
    while (((old ^ peek(&tw_grid_arrivals)) & 0x80000000u) == 0) __builtin_amdgcn_s_sleep(1);
    __threadfence();
  }
  __syncthreads();
}

}  // namespace tw
