//! NVRTC for real: compile, read back, report errors. No GPU is needed, the library is.

use tilewright_runtime::env::Env;
use tilewright_runtime::toolchain::log::{self, MessagePlace, Severity};
use tilewright_runtime::toolchain::{CompileError, CompileOptions, Cubin, Nvrtc, Spills};

const KERNELS: &str = r#"
struct alignas(64) TensorMap { unsigned long long words[16]; };
extern "C" __global__ void __launch_bounds__(256)
vector_add(const float* a, const float* b, float* c, int n, const __grid_constant__ TensorMap map) {
  __shared__ float tile[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  tile[threadIdx.x] = a[i];
  __syncthreads();
  if (i < n) c[i] = tile[threadIdx.x ^ 1] + b[i] + map.words[3];
}
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* a) {
  extern __shared__ float dynamic[];
  float r[96];
  #pragma unroll
  for (int i = 0; i < 96; i++) r[i] = a[i * 1024 + threadIdx.x] * dynamic[i];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 96; i++) r[i] += r[(i * 7 + 3) % 96] * r[(i * 5 + 1) % 96];
  #pragma unroll
  for (int i = 0; i < 96; i++) a[i * 1024 + threadIdx.x] = r[i];
}
extern "C" __global__ void local_array(float* a, int k) {
  float r[32];
  for (int i = 0; i < 32; i++) r[i] = a[i];
  for (int i = 0; i < k; i++) r[(i * k) & 31] += r[i & 31];
  a[k] = r[k & 31];
}
"#;

fn nvrtc() -> Nvrtc {
    match Nvrtc::find(&Env::process()) {
        Ok(nvrtc) => nvrtc,
        Err(missing) => panic!("this test needs NVRTC: run scripts/setup-nvrtc\n{missing}"),
    }
}

fn compile(source: &str, arch: &str) -> Result<Cubin, CompileError> {
    nvrtc().compile(source, arch, &CompileOptions::default())
}

#[test]
fn what_the_cubin_says_is_what_the_assembler_says() {
    for arch in ["sm_80", "sm_90", "sm_90a", "sm_100a", "sm_120a"] {
        let cubin = compile(KERNELS, arch).unwrap();
        let reports = log::assembler_reports(cubin.log());
        assert_eq!(reports.len(), 3, "{arch}: {}", cubin.log());
        assert_eq!(cubin.kernels().len(), 3, "{arch}");
        for report in reports {
            let kernel = cubin.kernel(&report.kernel).unwrap();
            let read = (kernel.registers, kernel.static_shared, kernel.stack);
            let said = (report.registers, report.static_shared, report.stack);
            assert_eq!(read, said, "{arch} {}", report.kernel);
            assert_eq!(
                kernel.spills,
                Some(Spills {
                    stores: report.spill_stores,
                    loads: report.spill_loads
                })
            );
            assert!(kernel.code_bytes > 0);
        }
    }
}

#[test]
fn resources_of_each_kernel_are_told_apart() {
    let cubin = compile(KERNELS, "sm_90a").unwrap();
    let add = cubin.kernel("vector_add").unwrap();
    assert_eq!(add.static_shared, 1024);
    assert_eq!((add.stack, add.max_threads), (0, Some(256)));
    assert_eq!(
        add.spills,
        Some(Spills {
            stores: 0,
            loads: 0
        })
    );
    // Offsets count from a base of the compiler's choice, so only their order is known here.
    let sizes: Vec<u32> = add.params.iter().map(|param| param.size).collect();
    assert_eq!(sizes, [8, 8, 8, 4, 128]);
    assert!(add.params.is_sorted_by_key(|param| param.offset));
    let spilling = cubin.kernel("spilling").unwrap();
    assert!(spilling.spills.unwrap().stores > 0 && spilling.stack > 0);
    assert_eq!(spilling.max_threads, Some(1024));
    // A local array is on the stack and is no spill.
    let array = cubin.kernel("local_array").unwrap();
    assert_eq!(
        array.spills,
        Some(Spills {
            stores: 0,
            loads: 0
        })
    );
    assert_eq!((array.stack, array.max_threads), (128, None));
    assert!(cubin.warnings().is_empty(), "{}", cubin.log());
    assert_eq!(log::without_report(cubin.log()), "");
}

#[test]
fn ptx_comes_on_request_and_without_the_nul() {
    let options = CompileOptions {
        ptx: true,
        ..CompileOptions::default()
    };
    let cubin = nvrtc().compile(KERNELS, "sm_90a", &options).unwrap();
    let ptx = cubin.ptx().unwrap();
    assert!(ptx.contains(".target sm_90a") && ptx.contains(".entry vector_add"));
    assert!(ptx.ends_with('\n') && !ptx.contains('\0'));
    assert_eq!(compile(KERNELS, "sm_90a").unwrap().ptx(), None);
}

#[test]
fn a_cubin_survives_the_cache() {
    for ptx in [false, true] {
        let options = CompileOptions {
            ptx,
            ..CompileOptions::default()
        };
        let cubin = nvrtc().compile(KERNELS, "sm_80", &options).unwrap();
        let encoded = cubin.encode();
        assert_eq!(Cubin::decode(&encoded).unwrap(), cubin);
        assert!(Cubin::decode(&encoded[..encoded.len() - 1]).is_err());
        assert!(Cubin::decode(&[]).is_err());
    }
}

#[test]
fn no_damage_to_a_cubin_makes_the_reader_panic() {
    let cubin = compile(KERNELS, "sm_90a").unwrap();
    let cubin = cubin.bytes();
    for length in (0..cubin.len()).step_by(97) {
        // A part of the file is never taken for the whole.
        assert!(tilewright_runtime::toolchain::cubin::kernels(&cubin[..length]).is_err());
    }
    let mut bytes = cubin.to_vec();
    for at in (0..cubin.len()).step_by(3) {
        for value in [0x00, 0x7f, 0xff] {
            bytes[at] = value;
            let _ = tilewright_runtime::toolchain::cubin::kernels(&bytes);
        }
        bytes[at] = cubin[at];
    }
    let not_ours = tilewright_runtime::toolchain::cubin::kernels(b"\x7fELF\x02\x01");
    assert_eq!(
        not_ours.unwrap_err().to_string(),
        "not a usable cubin: it is cut short"
    );
}

#[test]
fn a_source_error_shows_its_line() {
    let source = "extern \"C\" __global__ void f(int* a) {\n  int unused;\n  a[0] = missing;\n}\n\
                  #line 77 \"kernel.py\"\nextern \"C\" __global__ void g(int* a) { other; }\n";
    let options = CompileOptions {
        name: "f.cu".to_owned(),
        ..CompileOptions::default()
    };
    let error = nvrtc().compile(source, "sm_90a", &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the CUDA compiler refused the source:\n  \
         f.cu:3: error: identifier \"missing\" is undefined\n    \
         | a[0] = missing;\n  \
         kernel.py:77: error: identifier \"other\" is undefined"
    );
    let CompileError::Failed(failure) = error else {
        panic!("{error:?}")
    };
    assert!(failure.log.contains("2 errors detected"));
    let last = &failure.messages.last().unwrap().message;
    assert_eq!(last.severity, Severity::Warning);
    assert_eq!(
        last.place,
        MessagePlace::Source {
            file: "f.cu".to_owned(),
            line: 2
        }
    );
}

#[test]
fn an_assembler_error_shows_the_ptx() {
    let source = "extern \"C\" __global__ void f() { asm(\"bogus.instruction %r1;\"); }";
    let text = compile(source, "sm_90a").unwrap_err().to_string();
    assert!(text.contains("generated PTX, line "), "{text}");
    assert!(
        text.contains("Not a name of any known instruction: 'bogus'"),
        "{text}"
    );
    assert!(text.contains("| bogus.instruction %r1;"), "{text}");
}

#[test]
fn a_kernel_that_does_not_fit_is_an_error() {
    let source = "extern \"C\" __global__ void f(int* a) { __shared__ int x[100000]; \
                  x[threadIdx.x] = a[0]; __syncthreads(); a[1] = x[3]; }";
    let text = compile(source, "sm_90a").unwrap_err().to_string();
    assert!(text.contains("uses too much shared data"), "{text}");
}

#[test]
fn targets_are_checked() {
    let bad = compile("", "90a").unwrap_err().to_string();
    assert_eq!(
        bad,
        "`90a` is no CUDA target; one looks like sm_80 or sm_90a"
    );
    for arch in [
        "",
        "sm_",
        "sm_90a -x",
        "compute_90",
        "sm_9",
        "gfx950",
        "sm_99999999999",
    ] {
        assert!(
            matches!(compile("", arch), Err(CompileError::BadArch { .. })),
            "{arch}"
        );
    }
    let text = compile("", "sm_199").unwrap_err().to_string();
    assert!(
        text.starts_with("nvrtc ") && text.contains("cannot compile for sm_199"),
        "{text}"
    );
    assert!(
        text.contains("sm_80, ") && text.contains("sm_90, "),
        "{text}"
    );
}

#[test]
fn options_reach_the_compiler() {
    let options = CompileOptions {
        max_registers: Some(24),
        defines: vec![("SCALE".to_owned(), "3.0f".to_owned())],
        fast_math: true,
        line_info: true,
        ..CompileOptions::default()
    };
    let source = "extern \"C\" __global__ void f(float* a) { a[0] = SCALE / a[1]; }";
    let cubin = nvrtc().compile(source, "sm_80", &options).unwrap();
    assert!(cubin.kernels()[0].registers <= 24);
    let extra = CompileOptions {
        extra: vec!["--no-such-option".to_owned()],
        ..options
    };
    let error = nvrtc().compile(source, "sm_80", &extra).unwrap_err();
    assert!(matches!(error, CompileError::Option { .. }), "{error:?}");
    assert!(error.to_string().contains("--no-such-option"));
}

#[test]
fn a_source_without_kernels_has_none() {
    assert_eq!(compile("", "sm_80").unwrap().kernels(), []);
}

#[test]
fn a_nul_in_the_source_is_an_error() {
    assert_eq!(
        compile("a\0b", "sm_80").unwrap_err(),
        CompileError::Nul { what: "the source" }
    );
}

#[test]
fn the_identity_is_known_before_the_library_is_loaded() {
    let nvrtc = nvrtc();
    let before = nvrtc.identity().unwrap();
    let (major, minor) = nvrtc.version().unwrap();
    assert!(
        before.starts_with(&format!("nvrtc {major}.{minor} (")),
        "{before}"
    );
}

#[test]
fn a_file_that_is_no_library_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("libnvrtc.so.13");
    std::fs::write(&file, "not a library").unwrap();
    let named = file.to_str().unwrap();
    let env = Env::fixed("/", [("TILEWRIGHT_NVRTC", named)]);
    let nvrtc = Nvrtc::find(&env).unwrap();
    let error = nvrtc
        .compile("", "sm_80", &CompileOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(&format!("cannot load {named}: ")),
        "{error}"
    );
    assert!(error.contains("TILEWRIGHT_NVRTC"), "{error}");
}
