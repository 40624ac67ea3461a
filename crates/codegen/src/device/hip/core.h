// What HIP's headers would give, of the compiler's built-ins alone.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ __attribute__((always_inline)) inline
#define TW_FN __device__ __forceinline__
#define memcpy __builtin_memcpy

namespace tw {

template <int AXIS> struct ThreadIndex {
  TW_FN operator unsigned() const {
    return AXIS == 0   ? __builtin_amdgcn_workitem_id_x()
           : AXIS == 1 ? __builtin_amdgcn_workitem_id_y()
                       : __builtin_amdgcn_workitem_id_z();
  }
};
template <int AXIS> struct BlockIndex {
  TW_FN operator unsigned() const {
    return AXIS == 0   ? __builtin_amdgcn_workgroup_id_x()
           : AXIS == 1 ? __builtin_amdgcn_workgroup_id_y()
                       : __builtin_amdgcn_workgroup_id_z();
  }
};
template <int AXIS> struct GridSize {
  TW_FN operator unsigned() const {
    return AXIS == 0   ? __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x()
           : AXIS == 1 ? __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y()
                       : __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z();
  }
};
template <template <int> class OF> struct Axes { OF<0> x; OF<1> y; OF<2> z; };

}  // namespace tw
static __device__ const tw::Axes<tw::ThreadIndex> threadIdx{};
static __device__ const tw::Axes<tw::BlockIndex> blockIdx{};
static __device__ const tw::Axes<tw::GridSize> gridDim{};

TW_FN float __int_as_float(int v) { return __builtin_bit_cast(float, v); }
TW_FN float __uint_as_float(unsigned v) { return __builtin_bit_cast(float, v); }
TW_FN int __float_as_int(float v) { return __builtin_bit_cast(int, v); }
TW_FN unsigned __float_as_uint(float v) { return __builtin_bit_cast(unsigned, v); }
TW_FN int __popc(unsigned v) { return __builtin_popcount(v); }
TW_FN int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
TW_FN int __clz(unsigned v) { return v == 0 ? 32 : __builtin_clz(v); }
TW_FN int __clzll(unsigned long long v) { return v == 0 ? 64 : __builtin_clzll(v); }

namespace tw {
// Until this wave's LDS accesses, or all its accesses to memory, are complete. A fence of the
// compiler's waits too, but it drops that wait at the head of a loop where the way into the loop
// does not need it, though the way back does (clang 22). It keeps waits that are asked for; these
// stand behind a fence, which nothing moves across.
TW_FN void drain_lds() { __builtin_amdgcn_s_waitcnt(0xc07f); }
TW_FN void drain() { __builtin_amdgcn_s_waitcnt(0x70); }
// Until what this wave wrote is where another wave of the block can show it to other blocks.
TW_FN void settle() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  drain();
}
}  // namespace tw

// All threads of the block, with what they did to memory before: the fences wait for LDS, which
// the waves of a block share, and not for global memory, which they reach in order.
TW_FN void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  tw::drain_lds();
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
TW_FN void __threadfence_block() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  tw::drain_lds();
}
// The fence writes back the second-level cache, and the compiler waits for that only where it
// knows of something else under way (clang 22).
TW_FN void __threadfence() {
  tw::settle();
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
  tw::drain();
}

// Floats to integers toward zero, saturating.
TW_FN int __double2int_rz(double v) {
  return v >= 2147483647.0 ? 2147483647 : v <= -2147483648.0 ? -2147483647 - 1 : (int)v;
}
TW_FN int __float2int_rz(float v) { return __double2int_rz(v); }
TW_FN unsigned __double2uint_rz(double v) {
  return v >= 4294967295.0 ? 4294967295u : v <= 0 ? 0u : (unsigned)v;
}
TW_FN unsigned __float2uint_rz(float v) { return __double2uint_rz(v); }
TW_FN long long __double2ll_rz(double v) {
  return v >= 0x1p63 ? 9223372036854775807ll : v <= -0x1p63 ? -9223372036854775807ll - 1 : (long long)v;
}
TW_FN long long __float2ll_rz(float v) { return __double2ll_rz(v); }
TW_FN unsigned long long __double2ull_rz(double v) {
  return v >= 0x1p64 ? ~0ull : v <= 0 ? 0ull : (unsigned long long)v;
}
TW_FN unsigned long long __float2ull_rz(float v) { return __double2ull_rz(v); }
TW_FN unsigned __float2uint_rn(float v) { return (unsigned)__builtin_rintf(v); }
// To float32 toward zero.
TW_FN float __double2float_rz(double v) {
  float near = (float)v;
  bool above = __builtin_fabs((double)near) > __builtin_fabs(v);
  return above ? __int_as_float(__float_as_int(near) - 1) : near;
}
TW_FN float __ull2float_rz(unsigned long long v) {
  int extra = 64 - __clzll(v) - 24;
  return (float)(extra > 0 ? v >> extra << extra : v);
}
TW_FN float __ll2float_rz(long long v) {
  return v < 0 ? -__ull2float_rz(0 - (unsigned long long)v) : __ull2float_rz(v);
}
// Bytes that one instruction moves.
struct __attribute__((aligned(8))) uint2 { unsigned x, y; };
struct __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; };

