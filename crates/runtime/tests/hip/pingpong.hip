// A hand-written bf16 gemm (B transposed), 256x256x64, 512 threads, for gfx950, whose two groups of
// four waves run one cluster apart: one multiplies while the other reads and copies. The order is
// the one that HipKittens publishes for 16x16x32 products, with B0 of the next tile waited for
// before it is read (crates/schedule/tests/orders/bf16_8wave_repaired.tw). M and N are multiples
// of 256, K of 128 and at least 128. C is float.

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
#define VM(n) do { FIX_ORDER(); WAIT(n, 15); FIX_ORDER(); } while (0)
#define LGKM(n) do { FIX_ORDER(); WAIT(63, n); FIX_ORDER(); } while (0)
#define BARRIER() do { FIX_ORDER(); __builtin_amdgcn_s_barrier(); FIX_ORDER(); } while (0)
#define FIX_ORDER() __builtin_amdgcn_sched_barrier(0)

DEVICE int uniform(int x) {
  int s = __builtin_amdgcn_readfirstlane(x);
  asm volatile("s_nop 4" : "+s"(s));
  return s;
}

DEVICE rsrc_t buffer(const void *base, u32 bytes) {
  return __builtin_amdgcn_make_buffer_rsrc(const_cast<void *>(base), 0, (int)bytes, 0x00027000);
}

DEVICE void copy_to_lds_16(rsrc_t from, u32 lds, int voffset, int soffset) {
  asm volatile("s_nop 0\n\tbuffer_load_dwordx4 %1, %2, %3 offen lds"
               :: "{m0}"(lds), "v"(voffset), "s"(from), "s"(soffset) : "memory");
}

template <int offset> DEVICE bf16x8 read_16(u32 at) {
  bf16x8 r;
  asm volatile("ds_read_b128 %0, %1 offset:%2" : "=v"(r) : "v"(at), "i"(offset) : "memory");
  return r;
}

// 128 rows of 64 columns: 16 subtiles of 16 x 32, each 1024 bytes, two in a row of them. Rows 8
// to 15 of a subtile have their 32-byte pieces swapped.
#define HALF 16384
DEVICE int swizzled(int at) { return at ^ ((at >> 9) & 1) << 5; }

struct Wave {
  rsrc_t a_rows, b_rows;
  u32 lds;      // where the wave's part of a half goes
  int voffset;  // where it comes from
  int rows;     // bytes of 64 rows of A or B
  u32 a_at, b_at;
  f32x4 c[2][2][4][2];
  bf16x8 a[4][2], b0[2][2], b1[2][2];
};

// A half of a tile: two instructions a wave.
DEVICE void copy(Wave &w, bool is_b, int tile, int slot, int half) {
  rsrc_t from = is_b ? w.b_rows : w.a_rows;
  u32 to = w.lds + (is_b ? 4 * HALF : 0) + (slot * 2 + half) * HALF;
  for (int r = 0; r < 2; r++)
    copy_to_lds_16(from, to + r * 8192, w.voffset, tile * 128 + (half * 2 + r) * w.rows);
}

template <int slot, int half> DEVICE void read_a(Wave &w) {
#define READ(m, q) w.a[m][q] = read_16<(slot * 2 + half) * HALF + (m * 2 + q) * 1024>(w.a_at)
  READ(0, 0); READ(0, 1); READ(1, 0); READ(1, 1); READ(2, 0); READ(2, 1); READ(3, 0); READ(3, 1);
#undef READ
}

template <int slot, int half> DEVICE void read_b(Wave &w, bf16x8 (&b)[2][2]) {
#define READ(m, q) b[m][q] = read_16<(slot * 2 + half) * HALF + (m * 2 + q) * 1024>(w.b_at)
  READ(0, 0); READ(0, 1); READ(1, 0); READ(1, 1);
#undef READ
}

DEVICE void multiply(Wave &w, int i, int j) {
  FIX_ORDER();
  __builtin_amdgcn_s_setprio(1);
  FIX_ORDER();
  for (int m = 0; m < 4; m++)
    for (int n = 0; n < 2; n++)
      for (int q = 0; q < 2; q++)
        w.c[i][j][m][n] = __builtin_amdgcn_mfma_f32_16x16x32_bf16(
            w.a[m][q], j ? w.b1[n][q] : w.b0[n][q], w.c[i][j][m][n], 0, 0, 0);
  FIX_ORDER();
  __builtin_amdgcn_s_setprio(0);
  FIX_ORDER();
}

KERNEL __attribute__((amdgpu_flat_work_group_size(512, 512), amdgpu_waves_per_eu(2, 2)))
void pingpong(const u16 *__restrict A, const u16 *__restrict B, float *__restrict C, int M, int N, int K) {
  SHARED u8 smem[8 * HALF] __attribute__((aligned(1024)));
  int tid = __builtin_amdgcn_workitem_id_x();
  int lane = tid & 63;
  int wave = uniform(tid >> 6);
  int bm = __builtin_amdgcn_workgroup_id_x();
  int bn = __builtin_amdgcn_workgroup_id_y();
  u32 lds = (u32)(u64)(LDS u8 *)smem;
  Wave w;
  w.a_rows = buffer(A + (u64)bm * 256 * K, 256 * K * 2);
  w.b_rows = buffer(B + (u64)bn * 256 * K, 256 * K * 2);
  w.lds = lds + wave * 1024;
  w.rows = 128 * K;
  int at = swizzled(lane * 16);
  w.voffset = ((wave >> 1) * 16 + at / 64) * K * 2 + (wave & 1) * 64 + at % 64;
  int group = wave >> 2, column = wave & 3;
  int fragment = swizzled((lane & 15) * 64 + (lane >> 4) * 16);
  w.a_at = lds + group * 8192 + fragment;
  w.b_at = lds + 4 * HALF + column * 4096 + fragment;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      for (int m = 0; m < 4; m++)
        for (int n = 0; n < 2; n++) w.c[i][j][m][n] = 0;

  int tiles = K / 64;
  copy(w, true, 0, 0, 0);
  copy(w, false, 0, 0, 0);
  copy(w, true, 0, 0, 1);
  copy(w, false, 0, 0, 1);
  if (group == 1) BARRIER();
  VM(4);
  BARRIER();
  copy(w, true, 1, 1, 0);
  copy(w, false, 1, 1, 0);
  copy(w, true, 1, 1, 1);
  VM(4);
  BARRIER();
#pragma unroll 1
  for (int t = 0; t < tiles - 2; t += 2) {
    read_b<0, 0>(w, w.b0);
    read_a<0, 0>(w);
    copy(w, false, t + 1, 1, 1);
    LGKM(8);
    BARRIER();
    LGKM(0);
    multiply(w, 0, 0);
    BARRIER();

    read_b<0, 1>(w, w.b1);
    copy(w, true, t + 2, 0, 0);
    BARRIER();
    LGKM(0);
    multiply(w, 0, 1);
    BARRIER();

    read_a<0, 1>(w);
    copy(w, false, t + 2, 0, 0);
    BARRIER();
    LGKM(0);
    multiply(w, 1, 0);
    BARRIER();

    read_b<1, 0>(w, w.b0);
    copy(w, true, t + 2, 0, 1);
    VM(6);
    BARRIER();
    multiply(w, 1, 1);
    BARRIER();

    read_a<1, 0>(w);
    copy(w, false, t + 2, 0, 1);
    LGKM(8);
    BARRIER();
    LGKM(0);
    multiply(w, 0, 0);
    BARRIER();

    read_b<1, 1>(w, w.b1);
    copy(w, true, t + 3, 1, 0);
    BARRIER();
    LGKM(0);
    multiply(w, 0, 1);
    BARRIER();

    read_a<1, 1>(w);
    copy(w, false, t + 3, 1, 0);
    BARRIER();
    LGKM(0);
    multiply(w, 1, 0);
    BARRIER();

    copy(w, true, t + 3, 1, 1);
    VM(4);
    BARRIER();
    multiply(w, 1, 1);
    BARRIER();
  }

  read_b<0, 0>(w, w.b0);
  read_a<0, 0>(w);
  copy(w, false, tiles - 1, 1, 1);
  BARRIER();
  LGKM(0);
  multiply(w, 0, 0);
  BARRIER();
  read_b<0, 1>(w, w.b1);
  BARRIER();
  LGKM(0);
  multiply(w, 0, 1);
  BARRIER();
  read_a<0, 1>(w);
  VM(4);
  BARRIER();
  LGKM(0);
  multiply(w, 1, 0);
  multiply(w, 1, 1);
  BARRIER();
  read_b<1, 0>(w, w.b0);
  read_a<1, 0>(w);
  VM(2);
  BARRIER();
  LGKM(0);
  multiply(w, 0, 0);
  BARRIER();
  read_b<1, 1>(w, w.b1);
  VM(0);
  BARRIER();
  LGKM(0);
  multiply(w, 0, 1);
  BARRIER();
  read_a<1, 1>(w);
  BARRIER();
  LGKM(0);
  multiply(w, 1, 0);
  multiply(w, 1, 1);
  BARRIER();
  if (group == 0) BARRIER();

  float *block = C + (u64)bm * 256 * N + bn * 256;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      for (int m = 0; m < 4; m++)
        for (int n = 0; n < 2; n++)
          for (int r = 0; r < 4; r++) {
            int row = i * 128 + group * 64 + m * 16 + (lane >> 4) * 4 + r;
            int col = j * 128 + column * 32 + n * 16 + (lane & 15);
            block[(u64)row * N + col] = w.c[i][j][m][n][r];
          }
}
