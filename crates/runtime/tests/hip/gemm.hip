// A hand-written bf16 gemm (B transposed), 256x256x64, 512 threads, two stages, for gfx950: the
// loop that generated kernels have, small enough to read. M and N are multiples of 256 and K of
// 64. What the compiler makes of it under which form of copy is in docs/amd-waits.md.
//
// -DBUILTIN_COPY  the copies by the compiler's builtin instead of inline assembly
// -DASM_READ      the LDS reads by inline assembly
// -DFREE_ORDER    no fixed order around waits
// -DHALVES        reads and multiplies in two halves of k, with a counted wait between them

#define KERNEL extern "C" __attribute__((global))
#define DEVICE __attribute__((device, always_inline)) static inline
#define SHARED static __attribute__((shared))
#define LDS __attribute__((address_space(3)))
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));
typedef __amdgpu_buffer_rsrc_t rsrc_t;

#define WAIT(vm, lgkm) __builtin_amdgcn_s_waitcnt(((vm) & 15) | (((vm) >> 4) << 14) | 0x70 | ((lgkm) << 8))
#define ANY_VM 63
#define ANY_LGKM 15
#define BARRIER() __builtin_amdgcn_s_barrier()
#ifdef FREE_ORDER
#define FIX_ORDER()
#else
#define FIX_ORDER() __builtin_amdgcn_sched_barrier(0)
#endif

DEVICE int uniform(int x) {
  int s = __builtin_amdgcn_readfirstlane(x);
  asm volatile("s_nop 4" : "+s"(s));
  return s;
}

DEVICE rsrc_t buffer(const void *base, u32 bytes) {
  return __builtin_amdgcn_make_buffer_rsrc(const_cast<void *>(base), 0, (int)bytes, 0x00027000);
}

DEVICE void copy_to_lds_16(rsrc_t from, LDS u8 *lds, int voffset, int soffset) {
#ifdef BUILTIN_COPY
  __builtin_amdgcn_raw_ptr_buffer_load_lds(from, lds, 16, voffset, soffset, 0, 0);
#else
  asm volatile("s_nop 0\n\tbuffer_load_dwordx4 %1, %2, %3 offen lds"
               :: "{m0}"((u32)(u64)lds), "v"(voffset), "s"(from), "s"(soffset) : "memory");
#endif
}

DEVICE bf16x8 read_16(LDS u8 *p) {
#ifdef ASM_READ
  bf16x8 r;
  asm volatile("ds_read_b128 %0, %1" : "=v"(r) : "v"((u32)(u64)p) : "memory");
  return r;
#else
  return *(LDS bf16x8 *)p;
#endif
}

KERNEL __attribute__((amdgpu_flat_work_group_size(512, 512), amdgpu_waves_per_eu(2, 2)))
void gemm(const u16 *__restrict A, const u16 *__restrict B, u16 *__restrict C, int M, int N, int K) {
  // A in the first half, B in the second; two slots of 256 rows of 128 bytes each.
  SHARED u8 smem[131072] __attribute__((aligned(1024)));
  LDS u8 *lds = (LDS u8 *)smem;
  int tid = __builtin_amdgcn_workitem_id_x();
  int lane = tid & 63;
  int wave = uniform(tid >> 6);
  int bm = __builtin_amdgcn_workgroup_id_x();
  int bn = __builtin_amdgcn_workgroup_id_y();
  rsrc_t a_rows = buffer(A + (u64)bm * 256 * K, 256 * K * 2);
  rsrc_t b_rows = buffer(B + (u64)bn * 256 * K, 256 * K * 2);

  // A copy fills 64 rows; a wave's part is 8 rows. The swizzle is on the global side, for LDS is
  // written in lane order.
  int row = wave * 8 + (lane >> 3);
  int voffset = row * K * 2 + (((lane & 7) ^ (row & 7)) << 4);
  auto load = [&](int tile, int slot) __attribute__((always_inline)) {
    LDS u8 *to = lds + slot * 32768 + wave * 1024;
    for (int i = 0; i < 4; i++) copy_to_lds_16(a_rows, to + i * 8192, voffset, tile * 128 + i * 128 * K);
    for (int i = 0; i < 4; i++) copy_to_lds_16(b_rows, to + 65536 + i * 8192, voffset, tile * 128 + i * 128 * K);
  };

  // Two rows of four waves; a wave computes 128x64.
  int r = lane & 15, q = lane >> 4;
  int wm = wave >> 2, wn = wave & 3;
  LDS u8 *a_at[2], *b_at[2];
  for (int k = 0; k < 2; k++) {
    int column = ((q + 4 * k) ^ (r & 7)) << 4;
    a_at[k] = lds + (wm * 128 + r) * 128 + column;
    b_at[k] = lds + 65536 + (wn * 64 + r) * 128 + column;
  }
  f32x4 acc[8][4] = {};
  bf16x8 a[2][8], b[2][4];
  auto read = [&](int k, int slot) __attribute__((always_inline)) {
    for (int i = 0; i < 8; i++) a[k][i] = read_16(a_at[k] + slot * 32768 + i * 2048);
    for (int j = 0; j < 4; j++) b[k][j] = read_16(b_at[k] + slot * 32768 + j * 2048);
  };
  auto multiply = [&](int k) __attribute__((always_inline)) {
    for (int i = 0; i < 8; i++)
      for (int j = 0; j < 4; j++)
        acc[i][j] = __builtin_amdgcn_mfma_f32_16x16x32_bf16(a[k][i], b[k][j], acc[i][j], 0, 0, 0);
  };

  int tiles = K / 64;
  load(0, 0);
#pragma unroll 1
  for (int t = 0; t < tiles - 1; t++) {
    int slot = t & 1;
    load(t + 1, slot ^ 1);
    FIX_ORDER();
    WAIT(8, ANY_LGKM);
    BARRIER();
    FIX_ORDER();
    read(0, slot);
#ifdef HALVES
    FIX_ORDER();
    read(1, slot);
    FIX_ORDER();
    WAIT(ANY_VM, 12);
    FIX_ORDER();
    multiply(0);
    FIX_ORDER();
#else
    read(1, slot);
    FIX_ORDER();
#endif
    WAIT(ANY_VM, 0);
    BARRIER();
    FIX_ORDER();
#ifndef HALVES
    multiply(0);
#endif
    multiply(1);
  }
  FIX_ORDER();
  WAIT(0, ANY_LGKM);
  BARRIER();
  FIX_ORDER();
  read(0, (tiles - 1) & 1);
  read(1, (tiles - 1) & 1);
  FIX_ORDER();
  WAIT(ANY_VM, 0);
  FIX_ORDER();
  multiply(0);
  multiply(1);

  rsrc_t c_rows = buffer(C + (u64)bm * 256 * N + bn * 256, 256 * N * 2);
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 4; j++)
      for (int e = 0; e < 4; e++) {
        int at = ((wm * 128 + i * 16 + q * 4 + e) * N + wn * 64 + j * 16 + r) * 2;
        __bf16 value = (__bf16)acc[i][j][e];
        __builtin_amdgcn_raw_buffer_store_b16(__builtin_bit_cast(short, value), c_rows, at, 0, 0);
      }
}
