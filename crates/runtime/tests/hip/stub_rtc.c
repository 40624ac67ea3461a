// A hiprtc that compiles nothing, for tests: a source `code PATH` gives the bytes of that file, and
// any other one is refused on its second line. Options must name an architecture first.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char source[4096], name[256], log[512]; char *code; size_t size; } program;

int hiprtcVersion(int *major, int *minor) { *major = 7; *minor = 1; return 0; }
const char *hiprtcGetErrorString(int s) { return "HIPRTC_ERROR_OTHER"; }
int hiprtcCreateProgram(program **p, const char *source, const char *name, int n, const char **headers, const char **includes) {
  *p = calloc(1, sizeof(program));
  strncpy((*p)->source, source, sizeof (*p)->source - 1);
  strncpy((*p)->name, name, sizeof (*p)->name - 1);
  return 0;
}
int hiprtcDestroyProgram(program **p) { free((*p)->code); free(*p); *p = NULL; return 0; }
int hiprtcCompileProgram(program *p, int n, const char **options) {
  if (n < 1 || strncmp(options[0], "--offload-arch=gfx", 18)) { strcpy(p->log, "no architecture"); return 5; }
  if (strncmp(p->source, "code ", 5)) { snprintf(p->log, sizeof p->log, "%s:2:1: error: no\n", p->name); return 6; }
  FILE *f = fopen(p->source + 5, "rb");
  if (!f) return 11;
  p->code = malloc(1 << 20);
  p->size = fread(p->code, 1, 1 << 20, f);
  fclose(f);
  return 0;
}
int hiprtcGetProgramLogSize(program *p, size_t *n) { *n = strlen(p->log) + 1; return 0; }
int hiprtcGetProgramLog(program *p, char *out) { strcpy(out, p->log); return 0; }
int hiprtcGetCodeSize(program *p, size_t *n) { *n = p->size; return 0; }
int hiprtcGetCode(program *p, char *out) { memcpy(out, p->code, p->size); return 0; }
