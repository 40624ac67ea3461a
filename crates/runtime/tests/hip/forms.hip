// The C forms that generated HIP source uses, and the instruction that each must become. No ROCm
// headers are needed. The comment `want: NAME` behind a line is checked by the test against the
// assembly, for gfx942, gfx950 or both.
//
// Why the direct-to-LDS copy is inline assembly: docs/amd-waits.md.

#define KERNEL extern "C" __attribute__((global))
#define DEVICE __attribute__((device, always_inline)) static inline
#define SHARED static __attribute__((shared))
#define LDS __attribute__((address_space(3)))

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef __amdgpu_buffer_rsrc_t rsrc_t;
template <class T, int N> struct vec_of { typedef T type __attribute__((ext_vector_type(N))); };
template <class T, int N> using vec = typename vec_of<T, N>::type;
typedef vec<float, 2> f32x2;
typedef vec<float, 4> f32x4;
typedef vec<float, 16> f32x16;
typedef vec<int, 2> i32x2;
typedef vec<int, 4> i32x4;
typedef vec<int, 8> i32x8;
typedef vec<int, 16> i32x16;
typedef vec<short, 2> i16x2;
typedef vec<short, 4> i16x4;
typedef vec<_Float16, 2> f16x2;
typedef vec<_Float16, 4> f16x4;
typedef vec<_Float16, 8> f16x8;
typedef vec<__bf16, 2> bf16x2;
typedef vec<__bf16, 8> bf16x8;

// ---- wave-uniform values and buffer resources -------------------------------------------------

// A value that is the same in all lanes, in a scalar register. The `s_nop` keeps the value away
// from the copies' inline assembly: five wait states lie between a vector instruction's write of
// a scalar register and a memory instruction's read of it, and the compiler does not look for
// that hazard inside assembly. Use it outside loops only.
DEVICE int uniform(int x) {
  int s = __builtin_amdgcn_readfirstlane(x);
  asm volatile("s_nop 4" : "+s"(s));
  return s;
}

// A raw buffer of `bytes` bytes: reads past the end give zeros, writes past it are dropped.
// Word 3 is DATA_FORMAT_32, as LLVM sets it for gfx9.
DEVICE rsrc_t buffer(const void *base, u32 bytes) {
  return __builtin_amdgcn_make_buffer_rsrc(const_cast<void *>(base), 0, (int)bytes, 0x00027000);
}

// ---- global to LDS without registers ----------------------------------------------------------

// Lane l's bytes go to LDS at `lds + l * size`; `lds` is wave-uniform. `voffset` is the lane's
// own offset in bytes and does not change in a loop; `soffset` is the scalar one that does.
// The compiler sets m0 itself, and sees no LDS copy: it adds no wait for one, ever.
#if defined(__gfx950__)
DEVICE void copy_to_lds_16(rsrc_t from, LDS void *lds, int voffset, int soffset) {
  int moved;
  asm volatile("s_mov_b32 %0, %4\n\tbuffer_load_dwordx4 %2, %3, %0 offen lds" // want: buffer_load_dwordx4
               : "=&s"(moved) : "{m0}"((u32)(u64)lds), "v"(voffset), "s"(from), "s"(soffset) : "memory");
}
#endif
DEVICE void copy_to_lds_4(rsrc_t from, LDS void *lds, int voffset, int soffset) {
  int moved;
  asm volatile("s_mov_b32 %0, %4\n\tbuffer_load_dword %2, %3, %0 offen lds" // want: buffer_load_dword
               : "=&s"(moved) : "{m0}"((u32)(u64)lds), "v"(voffset), "s"(from), "s"(soffset) : "memory");
}

// ---- global to registers, where a copy to LDS is under way too -----------------------------------

// The compiler does not see the copies above, so its own count of a plain load's successors is too
// low, and its wait for that load would drain the copies as well. A load that is in flight beside
// copies is therefore assembly too; the schedule's own wait counts it, and ARRIVED, behind that
// wait, is where the value may be used from.
DEVICE i32x4 load_16_counted(rsrc_t from, int voffset, int soffset) {
  i32x4 value;
  asm volatile("buffer_load_dwordx4 %0, %1, %2, %3 offen" : "=v"(value) : "v"(voffset), "s"(from), "s"(soffset) : "memory");
  return value;
}
#define ARRIVED(x) asm volatile("" : "+v"(x))

// ---- waits, barriers, scheduling --------------------------------------------------------------

// gfx9's word: vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in 11:8; a counter at its
// highest value is not waited for. A macro, for the builtin wants a constant.
#define WAIT(vm, lgkm) __builtin_amdgcn_s_waitcnt(((vm) & 15) | (((vm) >> 4) << 14) | 0x70 | ((lgkm) << 8))
#define ANY_VM 63
#define ANY_LGKM 15
// Nothing crosses this line: it goes behind every wait and barrier, and between groups of
// operations that a later wait counts.
#define FIX_ORDER() __builtin_amdgcn_sched_barrier(0)
#define BARRIER() __builtin_amdgcn_s_barrier()

KERNEL void waits(float *out, const float *in, int bytes) {
  SHARED u8 smem[8192] __attribute__((aligned(1024)));
  int tid = __builtin_amdgcn_workitem_id_x();
  int wave = uniform(tid >> 6);
  LDS u8 *lds = (LDS u8 *)smem;
  rsrc_t from = buffer(in, bytes);
#if defined(__gfx950__)
  copy_to_lds_16(from, lds + wave * 1024, tid * 16, 64);
#endif
  copy_to_lds_4(from, lds + 4096 + wave * 256, tid * 4, 0);
  FIX_ORDER();
  WAIT(1, ANY_LGKM); // want: s_waitcnt vmcnt(1)
  BARRIER();         // want: s_barrier
  FIX_ORDER();
  f32x4 a = *(LDS f32x4 *)(lds + (tid & 63) * 16); // want: ds_read_b128
  FIX_ORDER();
  WAIT(0, 0); // want: s_waitcnt vmcnt(0) lgkmcnt(0)
  BARRIER();
  __builtin_amdgcn_s_setprio(1); // want: s_setprio 1
  __builtin_amdgcn_sched_group_barrier(8, 1, 0);
  FIX_ORDER();
  f32x2 b = *(LDS f32x2 *)(lds + 4096 + (tid & 63) * 8); // want: ds_read_b64
  *(LDS f32x4 *)(lds + (tid & 255) * 16) = a * b.x;       // want: ds_write_b128
  __builtin_amdgcn_raw_buffer_store_b128(__builtin_bit_cast(i32x4, a + b.y), buffer(out, bytes), tid * 16, 0, 0); // want: buffer_store_dwordx4
  i32x4 c = __builtin_amdgcn_raw_buffer_load_b128(from, tid * 16, 128, 0); // want: buffer_load_dwordx4
  __builtin_amdgcn_raw_buffer_store_b16((short)(c.x + c.y + c.z + c.w), buffer(out, bytes), tid * 2, 0, 0); // want: buffer_store_short
}

// A loop with both: a tile by copies and one register's worth of scales, one step ahead. The
// scales are used up before the next ones are asked for, so that one set of registers is enough.
// -DPLAIN_LOAD takes the compiler's own load instead, and -DCARRIED asks for the next scales while
// the last ones are needed: the compiler then copies registers that are still under way.
KERNEL __attribute__((amdgpu_flat_work_group_size(64, 64))) void mixed(float *out, const float *tile, const float *scale, int bytes, int n) {
  SHARED u8 smem[2048] __attribute__((aligned(1024)));
  LDS u8 *lds = (LDS u8 *)smem;
  int tid = __builtin_amdgcn_workitem_id_x();
  rsrc_t tiles = buffer(tile, bytes), scales = buffer(scale, bytes);
  auto copy = [&](int t) __attribute__((always_inline)) {
    for (int i = 0; i < 4; i++) copy_to_lds_4(tiles, lds + (t & 1) * 1024 + i * 256, tid * 4 + i * 256, t * 1024);
  };
#ifdef PLAIN_LOAD
#define SCALE(t) __builtin_amdgcn_raw_buffer_load_b128(scales, tid * 16, (t) * 1024, 0)
#else
#define SCALE(t) load_16_counted(scales, tid * 16, (t) * 1024)
#endif
  f32x4 sum = {};
  i32x4 ahead = SCALE(0);
  copy(0);
#pragma unroll 1
  for (int t = 0; t < n; t++) {
    copy(t + 1);
    FIX_ORDER();
    WAIT(4, ANY_LGKM);
    FIX_ORDER();
    f32x4 a = *(LDS f32x4 *)(lds + (t & 1) * 1024 + tid * 16);
    FIX_ORDER();
    WAIT(ANY_VM, 0);
    FIX_ORDER();
    ARRIVED(ahead);
    i32x4 now = ahead;
#ifdef CARRIED
    ahead = SCALE(t + 1);
    FIX_ORDER();
    sum += a * __builtin_bit_cast(f32x4, now);
#else
    sum += a * __builtin_bit_cast(f32x4, now);
    FIX_ORDER();
    ahead = SCALE(t + 1);
#endif
  }
  WAIT(0, 0);
  FIX_ORDER();
  ((f32x4 *)out)[tid] = sum;
}

// ---- matrix instructions ----------------------------------------------------------------------

template <class T> DEVICE T at(const void *p, int i) { return ((const T *)p)[i]; }
#define TAKE(T) at<T>(in, __COUNTER__ * 64 + tid)
#define GIVE(T, v) ((T *)out)[__COUNTER__ * 64 + tid] = (v)

KERNEL __attribute__((amdgpu_flat_work_group_size(64, 64))) void mfma(u8 *out, const u8 *in) {
  int tid = __builtin_amdgcn_workitem_id_x();
  // Both targets. On gfx950 the f16 and bf16 ones run at half rate.
  GIVE(f32x4, __builtin_amdgcn_mfma_f32_16x16x16f16(TAKE(f16x4), TAKE(f16x4), TAKE(f32x4), 0, 0, 0)); // want: v_mfma_f32_16x16x16_f16
  GIVE(f32x16, __builtin_amdgcn_mfma_f32_32x32x8f16(TAKE(f16x4), TAKE(f16x4), TAKE(f32x16), 0, 0, 0)); // want: v_mfma_f32_32x32x8_f16
  GIVE(f32x4, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(TAKE(i16x4), TAKE(i16x4), TAKE(f32x4), 0, 0, 0)); // want: v_mfma_f32_16x16x16_bf16
  GIVE(f32x16, __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(TAKE(i16x4), TAKE(i16x4), TAKE(f32x16), 0, 0, 0)); // want: v_mfma_f32_32x32x8_bf16
  GIVE(f32x4, __builtin_amdgcn_mfma_f32_16x16x4f32(TAKE(float), TAKE(float), TAKE(f32x4), 0, 0, 0)); // want: v_mfma_f32_16x16x4_f32
  // fp8 operands are eight bytes. The bits are FNUZ on gfx942 and OCP on gfx950.
  GIVE(f32x4, __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(TAKE(long), TAKE(long), TAKE(f32x4), 0, 0, 0)); // want: v_mfma_f32_16x16x32_fp8_fp8
  GIVE(f32x16, __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(TAKE(long), TAKE(long), TAKE(f32x16), 0, 0, 0)); // want: v_mfma_f32_32x32x16_fp8_fp8
  GIVE(f32x4, __builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8(TAKE(long), TAKE(long), TAKE(f32x4), 0, 0, 0)); // want: v_mfma_f32_16x16x32_bf8_bf8
  GIVE(f32x16, __builtin_amdgcn_mfma_f32_32x32x16_bf8_bf8(TAKE(long), TAKE(long), TAKE(f32x16), 0, 0, 0)); // want: v_mfma_f32_32x32x16_bf8_bf8
  GIVE(i32x4, __builtin_amdgcn_mfma_i32_16x16x32_i8(TAKE(long), TAKE(long), TAKE(i32x4), 0, 0, 0)); // want: v_mfma_i32_16x16x32_i8
  GIVE(i32x16, __builtin_amdgcn_mfma_i32_32x32x16_i8(TAKE(long), TAKE(long), TAKE(i32x16), 0, 0, 0)); // want: v_mfma_i32_32x32x16_i8
#if defined(__gfx950__)
  GIVE(f32x4, __builtin_amdgcn_mfma_f32_16x16x32_f16(TAKE(f16x8), TAKE(f16x8), TAKE(f32x4), 0, 0, 0)); // want: v_mfma_f32_16x16x32_f16
  GIVE(f32x16, __builtin_amdgcn_mfma_f32_32x32x16_f16(TAKE(f16x8), TAKE(f16x8), TAKE(f32x16), 0, 0, 0)); // want: v_mfma_f32_32x32x16_f16
  GIVE(f32x4, __builtin_amdgcn_mfma_f32_16x16x32_bf16(TAKE(bf16x8), TAKE(bf16x8), TAKE(f32x4), 0, 0, 0)); // want: v_mfma_f32_16x16x32_bf16
  GIVE(f32x16, __builtin_amdgcn_mfma_f32_32x32x16_bf16(TAKE(bf16x8), TAKE(bf16x8), TAKE(f32x16), 0, 0, 0)); // want: v_mfma_f32_32x32x16_bf16
  GIVE(i32x4, __builtin_amdgcn_mfma_i32_16x16x64_i8(TAKE(i32x4), TAKE(i32x4), TAKE(i32x4), 0, 0, 0)); // want: v_mfma_i32_16x16x64_i8
  GIVE(i32x16, __builtin_amdgcn_mfma_i32_32x32x32_i8(TAKE(i32x4), TAKE(i32x4), TAKE(i32x16), 0, 0, 0)); // want: v_mfma_i32_32x32x32_i8
  // Formats: 0 fp8 e4m3, 1 fp8 e5m2 (8 registers), 2 fp6 e2m3, 3 fp6 e3m2 (6), 4 fp4 e2m1 (4).
  // Scale selectors and scales of 0 make the form without scales. The operand's
  // type has eight words for every format; the compiler drops those that the format does not use.
#define F8F6F4(acc, shape, words, format) \
  GIVE(acc, __builtin_amdgcn_mfma_scale_f32_##shape##_f8f6f4(TAKE(words), TAKE(words), TAKE(acc), format, format, 0, 0, 0, 0))
  F8F6F4(f32x4, 16x16x128, i32x8, 0);  // want: v_mfma_f32_16x16x128_f8f6f4
  F8F6F4(f32x4, 16x16x128, i32x8, 1);  // want: cbsz:1 blgp:1
  F8F6F4(f32x4, 16x16x128, i32x8, 2);  // want: cbsz:2 blgp:2
  F8F6F4(f32x4, 16x16x128, i32x8, 3);  // want: cbsz:3 blgp:3
  F8F6F4(f32x4, 16x16x128, i32x8, 4);  // want: cbsz:4 blgp:4
  F8F6F4(f32x16, 32x32x64, i32x8, 0);  // want: v_mfma_f32_32x32x64_f8f6f4
  F8F6F4(f32x16, 32x32x64, i32x8, 4);
  // With one e8m0 scale for each 32 elements of k: the scale's byte is in a register.
  GIVE(f32x4, __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(TAKE(i32x8), TAKE(i32x8), TAKE(f32x4), 4, 4, 0, TAKE(int), 0, TAKE(int))); // want: v_mfma_scale_f32_16x16x128_f8f6f4
#endif
}

// ---- conversions ------------------------------------------------------------------------------

KERNEL void conversions(u8 *out, const u8 *in) {
  int tid = __builtin_amdgcn_workitem_id_x();
  // Rounds to nearest even: one instruction on gfx950, bit arithmetic on gfx942.
  float a = TAKE(float), b = TAKE(float);
  GIVE(bf16x2, (bf16x2{(__bf16)a, (__bf16)b})); // want gfx950: v_cvt_pk_bf16_f32
  GIVE(float, (float)TAKE(__bf16));
  GIVE(float, (float)TAKE(_Float16)); // want: v_cvt_f32_f16
  // Two floats to two fp8 in the low half (false) or the high half (true) of a word.
  int word = __builtin_amdgcn_cvt_pk_fp8_f32(a, b, 0, false); // want: v_cvt_pk_fp8_f32
  GIVE(int, __builtin_amdgcn_cvt_pk_fp8_f32(b, a, word, true));
  GIVE(int, __builtin_amdgcn_cvt_pk_bf8_f32(a, b, 0, false)); // want: v_cvt_pk_bf8_f32
  GIVE(f32x2, __builtin_amdgcn_cvt_pk_f32_fp8(TAKE(int), false)); // want: v_cvt_pk_f32_fp8
  GIVE(f32x2, __builtin_amdgcn_cvt_pk_f32_bf8(TAKE(int), true));  // want: v_cvt_pk_f32_bf8
  GIVE(float, __builtin_amdgcn_cvt_f32_fp8(TAKE(int), 2)); // want: v_cvt_f32_fp8
#if defined(__gfx950__)
  // fp4 and fp6 carry a scale; 1.0 leaves the value as it is.
  GIVE(f32x2, __builtin_amdgcn_cvt_scalef32_pk_f32_fp4(TAKE(u32), 1.0f, 0)); // want: v_cvt_scalef32_pk_f32_fp4
  GIVE(u32, __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(0, a, b, 1.0f, 0)); // want: v_cvt_scalef32_pk_fp4_f32
#endif
  // exp2, log2, rcp and sqrt need no device library; exp is exp2 of a product.
  GIVE(float, __builtin_amdgcn_exp2f(a)); // want: v_exp_f32
  GIVE(float, __builtin_amdgcn_logf(a));  // want: v_log_f32
  GIVE(float, __builtin_amdgcn_rcpf(a));  // want: v_rcp_f32
  GIVE(float, __builtin_amdgcn_rsqf(a));  // want: v_rsq_f32
}

// ---- lanes ------------------------------------------------------------------------------------

// The sum over all 64 lanes: within rows of 16 by DPP, then across rows.
template <int CTRL> DEVICE float lane_move(float x) {
  int moved = __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, x), CTRL, 0xf, 0xf, true);
  return __builtin_bit_cast(float, moved);
}
DEVICE float wave_sum(float x) {
  x += lane_move<0xB1>(x);  // quad_perm [1,0,3,2]
  x += lane_move<0x4E>(x);  // quad_perm [2,3,0,1]
  x += lane_move<0x141>(x); // row_half_mirror
  x += lane_move<0x140>(x); // row_mirror
  // xor 16 and xor 32 by LDS permutation, which needs no LDS memory
  int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  for (int mask = 16; mask <= 32; mask *= 2) {
    int other = __builtin_amdgcn_ds_bpermute((lane ^ mask) << 2, __builtin_bit_cast(int, x));
    x += __builtin_bit_cast(float, other);
  }
  return x;
}

KERNEL __attribute__((amdgpu_flat_work_group_size(64, 64))) void lanes(u8 *out, const u8 *in) {
  int tid = __builtin_amdgcn_workitem_id_x();
  GIVE(float, wave_sum(TAKE(float))); // want: ds_bpermute_b32
#if defined(__gfx950__)
  SHARED short smem[1024];
  LDS i16x4 *p = (LDS i16x4 *)smem + tid;
  *p = TAKE(i16x4);
  WAIT(ANY_VM, 0);
  GIVE(i16x4, __builtin_amdgcn_ds_read_tr16_b64_v4i16(p)); // want: ds_read_b64_tr_b16
  GIVE(i32x2, __builtin_amdgcn_ds_read_tr8_b64_v2i32((LDS i32x2 *)p)); // want: ds_read_b64_tr_b8
  auto swapped = __builtin_amdgcn_permlane32_swap(TAKE(u32), TAKE(u32), false, false); // want: v_permlane32_swap_b32
  GIVE(u32, swapped[0] + swapped[1]);
#endif
}

// ---- atomics ----------------------------------------------------------------------------------

KERNEL void atomics(float *f, int *i, u32 *u) {
  int tid = __builtin_amdgcn_workitem_id_x();
  // Without the attribute a float atomic becomes a loop of compare and swap.
  [[clang::atomic(no_remote_memory, no_fine_grained_memory, ignore_denormal_mode)]] {
    __scoped_atomic_fetch_add(f + tid, 1.0f, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE); // want: global_atomic_add_f32
  }
  __scoped_atomic_fetch_add(i + tid, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE); // want: global_atomic_add
  __scoped_atomic_fetch_max(i + tid, tid, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE); // want: global_atomic_smax
  __scoped_atomic_fetch_min(u + tid, 7u, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE); // want: global_atomic_umin
  // Of a pointer to any memory, once the compiler sees to which.
  f16x2 *h = (f16x2 *)f + 64;
  i16x2 *s = (i16x2 *)f + 128;
  f16x2 before = __builtin_amdgcn_flat_atomic_fadd_v2f16(h + tid, (f16x2){1, 2}); // want: global_atomic_pk_add_f16
  __builtin_amdgcn_flat_atomic_fadd_v2bf16(s + tid, (i16x2){16256, 16384}); // want: global_atomic_pk_add_bf16
  h[tid + 64] = before;
}
