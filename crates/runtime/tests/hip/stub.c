// A HIP runtime without a GPU, for tests: device memory is host memory, and code is not run but
// known by name. `add` adds its third argument to the first `n` floats of its first;
// `elementwise_add` is the example of that name at its default tiles; `flush` reads memory and
// leaves nothing; `by_scratch_1` copies rows of 256 floats to its second argument, and `by_scratch_2`
// doubles those of its second into its first. With STUB_WRONG set, sums are off by one. It has two GPUs, of gfx950 or what STUB_ARCH says, with 256 compute units
// or as many as STUB_UNITS says.
//
// For other tiles STUB_ELEMENTS says how many elements `elementwise_add` has, STUB_WRONG_GRID at which
// grid in y its sums are off, and with STUB_COST its time is its grid in y.
//
// A launch with a grid of 13 in y faults: the next synchronisation says so, and every later call
// fails until the device is reset, as on a GPU.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef int status;
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, BAD_DEVICE = 101, BAD_IMAGE = 200, NOT_FOUND = 500, NOT_READY = 600, FAULT = 700 };

static __thread int current;
static int dead[2], pending[2];
static long live_objects, allocations;

// Objects that are alive: allocations, streams, events, modules.
long stub_live(void) { return live_objects; }
// Allocations of memory so far.
long stub_allocations(void) { return allocations; }
int stub_current(void) { return current; }

static void *object(size_t size) { live_objects++; return calloc(1, size ? size : 1); }
static status drop(void *o) { if (!o) return INVALID; live_objects--; free(o); return OK; }
#define ALIVE if (dead[current]) return FAULT

status hipInit(unsigned flags) { return flags ? INVALID : OK; }
status hipRuntimeGetVersion(int *v) { *v = 70100000 + 42; return OK; }
const char *hipGetErrorName(status s) { return s == FAULT ? "hipErrorIllegalAddress" : s == BAD_IMAGE ? "hipErrorInvalidImage" : "hipErrorOther"; }
const char *hipGetErrorString(status s) { return s == FAULT ? "an illegal memory access was encountered" : "something else"; }

status hipGetDeviceCount(int *n) { *n = 2; return OK; }
status hipGetDevice(int *d) { *d = current; return OK; }
status hipSetDevice(int d) { if (d < 0 || d > 1) return BAD_DEVICE; current = d; return OK; }
status hipDeviceGetName(char *name, int size, int d) { strncpy(name, d ? "Stub 1" : "Stub 0", size); return OK; }
status hipDeviceTotalMem(size_t *bytes, int d) { *bytes = 1ul << 30; return OK; }
status hipDeviceGetAttribute(int *value, int what, int d) {
  switch (what) {
  case 5: *value = 2400000; break;
  case 19: *value = 4 << 20; break;
  case 29: *value = 0x7fffffff; break;
  case 30: case 31: *value = 65535; break;
  case 56: *value = 1024; break;
  case 59: *value = 8192; break;
  case 60: *value = 2000000; break;
  case 63: *value = getenv("STUB_UNITS") ? atoi(getenv("STUB_UNITS")) : 256; break;
  case 74: *value = 163840; break;
  case 87: *value = 64; break;
  default: return INVALID;
  }
  return OK;
}
// The real structure has the name first and the architecture far behind it.
status hipGetDevicePropertiesR0600(void *p, int d) {
  strcpy((char *)p, "gfx000 is the GPU's own name");
  const char *arch = getenv("STUB_ARCH");
  strcpy((char *)p + 1160, arch ? arch : "gfx950");
  strcat((char *)p + 1160, ":sramecc+:xnack-");
  return OK;
}
status hipDeviceSynchronize(void) {
  ALIVE;
  if (pending[current]) { dead[current] = 1; return FAULT; }
  return OK;
}
status hipDeviceReset(void) { dead[current] = pending[current] = 0; return OK; }

status hipMemGetInfo(size_t *free_bytes, size_t *total) { ALIVE; *free_bytes = 1ul << 29; *total = 1ul << 30; return OK; }
status hipMalloc(void **p, size_t bytes) {
  ALIVE;
  if (bytes > 1ul << 29) return NO_MEMORY;
  *p = object(bytes);
  allocations++;
  return OK;
}
status hipFree(void *p) { return drop(p); }
status hipMemcpyHtoDAsync(void *to, const void *from, size_t n, void *s) { ALIVE; memcpy(to, from, n); return OK; }
status hipMemcpyDtoHAsync(void *to, void *from, size_t n, void *s) { ALIVE; memcpy(to, from, n); return OK; }
status hipMemcpyDtoDAsync(void *to, void *from, size_t n, void *s) { ALIVE; memcpy(to, from, n); return OK; }
status hipMemsetD8Async(void *p, unsigned char b, size_t n, void *s) { ALIVE; memset(p, b, n); return OK; }
status hipMemsetD32Async(void *p, int w, size_t n, void *s) { ALIVE; for (size_t i = 0; i < n; i++) ((int *)p)[i] = w; return OK; }

status hipStreamCreateWithFlags(void **s, unsigned flags) { ALIVE; *s = object(8); return OK; }
status hipStreamDestroy(void *s) { return drop(s); }
status hipStreamSynchronize(void *s) { return hipDeviceSynchronize(); }
status hipStreamQuery(void *s) { ALIVE; return pending[current] ? NOT_READY : OK; }
status hipStreamWaitEvent(void *s, void *e, unsigned flags) { ALIVE; return OK; }
status hipEventCreateWithFlags(void **e, unsigned flags) { ALIVE; *e = object(8); return OK; }
status hipEventDestroy(void *e) { return drop(e); }
static long ticks;
status hipEventRecord(void *e, void *s) { ALIVE; *(long *)e = ++ticks; return OK; }
status hipEventSynchronize(void *e) { ALIVE; return OK; }
status hipEventElapsedTime(float *ms, void *a, void *b) { ALIVE; *ms = (float)(*(long *)b - *(long *)a); return OK; }

status hipModuleLoadData(void **m, const void *image) {
  ALIVE;
  if (!memcmp(image, "refused", 7)) return BAD_IMAGE;
  *m = object(8);
  return OK;
}
status hipModuleUnload(void *m) { return drop(m); }
status hipModuleGetFunction(void **f, void *m, const char *name) {
  ALIVE;
  static const char *known[] = {"add", "elementwise_add", "flush", "by_scratch_1", "by_scratch_2"};
  for (int i = 0; i < 5; i++)
    if (!strcmp(name, known[i])) { *f = (void *)known[i]; return OK; }
  return NOT_FOUND;
}
status hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *f, int threads, size_t lds) { *blocks = 2048 / threads; return OK; }
status hipModuleLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned lds, void *s, void **args, void **extra) {
  ALIVE;
  if (gy == 13) { pending[current] = 1; return OK; }
  float *p = *(float **)args[0];
  if (!strcmp(f, "flush")) return OK;
  if (!strcmp(f, "elementwise_add")) {
    float *b = *(float **)args[1], *c = *(float **)args[2];
    const char *off = getenv("STUB_WRONG_GRID"), *elements = getenv("STUB_ELEMENTS");
    float wrong = getenv("STUB_WRONG") || (off && atoi(off) == (int)gy) ? 1 : 0;
    long count = elements ? atol(elements) : (long)gx * 128 * gy * 32;
    for (long i = 0; i < count; i++) c[i] = p[i] + b[i] + wrong;
    if (getenv("STUB_COST")) ticks += gy;
    return OK;
  }
  if (!strncmp(f, "by_scratch_", 11)) {
    float *w = *(float **)args[1];
    int copies = ((char *)f)[11] == '1';
    for (long i = 0; i < (long)gx * 256; i++)
      if (copies) w[i] = p[i];
      else p[i] = w[i] + w[i];
    return OK;
  }
  int n = *(int *)args[1];
  float x = *(float *)args[2];
  for (int i = 0; i < n && i < (int)(gx * bx); i++) p[i] += x;
  return OK;
}
status hipModuleLaunchCooperativeKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned lds, void *s, void **args) {
  return hipModuleLaunchKernel(f, gx, gy, gz, bx, by, bz, lds, s, args, NULL);
}
