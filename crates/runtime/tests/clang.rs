//! clang for AMD, as `scripts/setup-clang` installs it: HIP source to assembly and code objects,
//! what is read back, and the audit of a hand-written gemm under every form it was tried in.

use std::collections::BTreeMap;
use std::time::Instant;

use tilewright_gfx9::asm::{Wait, parse};
use tilewright_gfx9::audit::{Expectation, Kind, Report, Step, audit, vgprs_at};
use tilewright_runtime::env::Env;
use tilewright_runtime::toolchain::hsaco::kernels;
use tilewright_runtime::toolchain::{
    AmdClang, AmdToolchain, CompileError, HipOptions, Hiprtc, Hsaco,
};

const GEMM: &str = include_str!("hip/gemm.hip");
const FORMS: &str = include_str!("hip/forms.hip");

fn clang() -> AmdClang {
    match AmdClang::find(&Env::process()) {
        Ok(clang) => clang,
        Err(missing) => panic!("this test needs clang 22: run scripts/setup-clang\n{missing}"),
    }
}

fn with(defines: &[&str], extra: &[&str]) -> HipOptions {
    HipOptions {
        name: "gemm.hip".to_owned(),
        defines: defines
            .iter()
            .map(|d| ((*d).to_owned(), "1".to_owned()))
            .collect(),
        extra: extra.iter().map(|e| (*e).to_owned()).collect(),
        ..HipOptions::default()
    }
}

fn expected() -> Expectation {
    Expectation {
        steps: vec![
            Step::Copies(8),
            Step::Wait(Wait::vm(8)),
            Step::Barrier,
            Step::Reads(24),
            Step::Wait(Wait::lgkm(0)),
            Step::Barrier,
        ],
        mfma: BTreeMap::from([("v_mfma_f32_16x16x32_bf16".to_owned(), 64)]),
        lds_copies: Some(8),
        lds_reads: Some(24),
        vgprs: Some(vgprs_at(2)),
        address_arithmetic: 4,
        lane_reads: 0,
        half_rate: false,
        drained: true,
        no_fences: true,
        ..Expectation::default()
    }
}

fn audited(asm: &str, expected: &Expectation) -> Report {
    let program = parse(asm).unwrap();
    let kernel = program.function("gemm").expect("the kernel");
    audit(kernel, program.arch.as_deref().unwrap_or(""), expected)
}

#[test]
fn a_code_object_says_what_its_kernel_needs() {
    let hsaco = clang().compile(GEMM, "gfx950", &with(&[], &[])).unwrap();
    assert_eq!(hsaco.arch(), "gfx950");
    assert_eq!(hsaco.log(), "");
    let kernel = hsaco.kernel("gemm").unwrap();
    assert!((128..=256).contains(&kernel.vgprs), "{kernel:?}");
    assert_eq!(
        (kernel.agprs, kernel.lds_bytes, kernel.max_threads),
        (0, 131_072, 512)
    );
    assert_eq!(
        (kernel.scratch_bytes, kernel.vgpr_spills, kernel.sgpr_spills),
        (0, 0, 0)
    );
    assert!(kernel.sgprs > 0 && kernel.code_bytes > 1000, "{kernel:?}");
    let sizes: Vec<_> = kernel
        .args
        .iter()
        .map(|a| (a.offset, a.size, a.pointer))
        .collect();
    let pointer = |offset| (offset, 8, true);
    let value = |offset| (offset, 4, false);
    assert_eq!(
        sizes,
        [
            pointer(0),
            pointer(8),
            pointer(16),
            value(24),
            value(28),
            value(32)
        ]
    );
    // The text says the same as the file.
    let program = parse(hsaco.asm()).unwrap();
    let needs = program.function("gemm").unwrap().needs.clone().unwrap();
    assert_eq!((needs.vgprs, needs.sgprs), (kernel.vgprs, kernel.sgprs));

    let back = Hsaco::decode(&hsaco.encode()).unwrap();
    assert_eq!(back, hsaco);
    let mut cut = hsaco.encode();
    cut.truncate(cut.len() / 2);
    assert!(Hsaco::decode(&cut).is_err());
}

/// A file from a disk may hold anything.
#[test]
fn a_damaged_code_object_is_an_error_or_harmless() {
    let whole = clang().compile(GEMM, "gfx950", &with(&[], &[])).unwrap();
    let whole = whole.bytes();
    for cut in (0..whole.len()).step_by(61) {
        assert!(kernels(&whole[..cut]).is_err(), "cut at {cut}");
    }
    // The notes are near the front; every byte of them is damaged in turn.
    for at in 0..whole.len().min(4096) {
        for value in [0, 0x7f, 0xdd, 0xff] {
            let mut damaged = whole.to_vec();
            damaged[at] = value;
            let _ = kernels(&damaged);
        }
    }
}

/// The reason for the copies' inline assembly, see docs/amd-waits.md.
#[test]
fn the_copies_form_decides_whether_the_compiler_adds_a_wait() {
    let clang = clang();
    let aliasing = ["-fstrict-aliasing"];
    let compile = |defines: &[&str], extra: &[&str]| {
        clang
            .assembly(GEMM, "gfx950", &with(defines, extra))
            .unwrap()
    };
    let plain = compile(&[], &[]);
    let report = audited(&plain, &expected());
    assert!(report.passed(), "{report}");
    // The same text, whatever the compiler assumes of types.
    assert_eq!(plain, compile(&[], &aliasing));

    // The compiler's own copies depend on it.
    let builtin = audited(&compile(&["BUILTIN_COPY"], &[]), &expected());
    let kinds: Vec<Kind> = builtin.findings.iter().map(|f| f.kind).collect();
    assert_eq!(kinds, [Kind::ExtraWait], "{builtin}");
    assert_eq!(builtin.findings[0].text, "s_waitcnt vmcnt(0)");
    let builtin = audited(&compile(&["BUILTIN_COPY"], &aliasing), &expected());
    assert!(builtin.passed(), "{builtin}");

    // Without a fixed order the compiler moves multiplications in front of the wait, and then
    // has to wait itself.
    let free = audited(&compile(&["FREE_ORDER"], &[]), &expected());
    assert!(free.has(Kind::ExtraWait), "{free}");

    // A counted wait keeps its count.
    let mut halves = expected();
    halves.steps.insert(4, Step::Wait(Wait::lgkm(12)));
    let report = audited(&compile(&["HALVES"], &[]), &halves);
    assert!(report.passed(), "{report}");
}

#[test]
fn faults_planted_in_the_source_are_found() {
    let clang = clang();
    let faulty = |old: &str, new: &str| {
        assert!(GEMM.contains(old), "{old}");
        let source = GEMM.replacen(old, new, 1);
        let asm = clang.assembly(&source, "gfx950", &with(&[], &[])).unwrap();
        audited(&asm, &expected())
    };
    let looser = faulty("WAIT(8, ANY_LGKM)", "WAIT(9, ANY_LGKM)");
    assert!(looser.has(Kind::WrongWait), "{looser}");
    // The wait in front of the barrier that frees the slot; the compiler's own comes too late.
    let dropped = faulty("    WAIT(ANY_VM, 0);\n    BARRIER();", "    BARRIER();");
    assert!(!dropped.passed(), "{dropped}");
    let fenced = faulty("    BARRIER();", "    WAIT(0, 0); BARRIER();");
    assert!(fenced.has(Kind::StricterWait), "{fenced}");
}

#[test]
fn a_fence_waits_for_the_compilers_copies_and_not_for_ours() {
    let clang = clang();
    let fence = "    __builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\"); BARRIER();";
    let source = GEMM.replacen("    BARRIER();", fence, 1);
    let report = |defines: &[&str]| {
        let options = with(defines, &["-fstrict-aliasing"]);
        let asm = clang.assembly(&source, "gfx950", &options).unwrap();
        audited(&asm, &expected())
    };
    let builtin = report(&["BUILTIN_COPY"]);
    assert!(builtin.has(Kind::StricterWait), "{builtin}");
    assert!(report(&[]).passed());
}

/// A load to registers beside copies: see `load_16_counted` in forms.hip.
#[test]
fn a_counted_load_is_waited_for_by_the_schedule_alone() {
    let clang = clang();
    let expected = Expectation {
        steps: vec![
            Step::Copies(4),
            Step::Wait(Wait::vm(4)),
            Step::Reads(1),
            Step::Wait(Wait::lgkm(0)),
        ],
        address_arithmetic: 1,
        ..Expectation::default()
    };
    let report = |defines: &[&str]| {
        let asm = clang
            .assembly(FORMS, "gfx950", &with(defines, &[]))
            .unwrap();
        let program = parse(&asm).unwrap();
        audit(program.function("mixed").unwrap(), "gfx950", &expected)
    };
    let good = report(&[]);
    assert!(good.passed(), "{good}");
    // The compiler's own load drains the copies that it does not know of.
    let plain = report(&["PLAIN_LOAD"]);
    assert!(plain.has(Kind::ExtraWait), "{plain}");
    // Registers that are copied while they are under way: the compiler makes wrong code of it.
    let carried = report(&["CARRIED"]);
    assert!(carried.has(Kind::Pending), "{carried}");
    let kinds = carried
        .findings
        .iter()
        .all(|f| f.text.starts_with("v_mov_b64"));
    assert!(kinds, "{carried}");
}

#[test]
fn every_form_becomes_its_instruction() {
    let clang = clang();
    for arch in ["gfx942", "gfx950"] {
        let hsaco = clang.compile(FORMS, arch, &HipOptions::default()).unwrap();
        assert_eq!(hsaco.log(), "", "{arch}");
        let program = parse(hsaco.asm()).unwrap();
        // Whether each open `#if` is for gfx950 alone.
        let mut open = Vec::new();
        let mut wanted = 0;
        for line in FORMS.lines() {
            if line.starts_with("#if") {
                open.push(line.contains("__gfx950__"));
            } else if line == "#endif" {
                open.pop();
            }
            let Some((_, want)) = line.split_once("// want") else {
                continue;
            };
            let (only, text) = want.split_once(": ").unwrap();
            if arch == "gfx942" && (open.contains(&true) || only == " gfx950") {
                continue;
            }
            wanted += 1;
            let found = program
                .functions
                .iter()
                .flat_map(|f| &f.instructions)
                .any(|i| i.text.contains(text));
            assert!(found, "{arch}: no `{text}`");
        }
        assert!(wanted >= 35, "{arch}: {wanted}");
        // Inline assembly keeps its own hazards, and every register is waited for.
        for kernel in program.kernels() {
            let report = audit(kernel, arch, &Expectation::default());
            let wrong = report
                .findings
                .iter()
                .find(|f| matches!(f.kind, Kind::Pending | Kind::Hazard | Kind::Scratch));
            assert_eq!(wrong, None, "{}", kernel.name);
        }
    }
}

#[test]
fn what_a_target_lacks_is_refused_with_its_line() {
    let clang = clang();
    let source = "typedef float f4 __attribute__((ext_vector_type(4)));\n\
                  typedef _Float16 h8 __attribute__((ext_vector_type(8)));\n\
                  extern \"C\" __attribute__((global)) void f(f4 *c, h8 *a) {\n  \
                  *c = __builtin_amdgcn_mfma_f32_16x16x32_f16(*a, *a, *c, 0, 0, 0);\n}\n";
    let options = with(&[], &[]);
    assert!(clang.compile(source, "gfx950", &options).is_ok());
    let error = clang.compile(source, "gfx942", &options).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("the HIP compiler refused the source:\n  gemm.hip:4: error: "),
        "{text}"
    );
    assert!(
        text.contains("| *c = __builtin_amdgcn_mfma_f32_16x16x32_f16"),
        "{text}"
    );
    for arch in ["", "sm_90a", "gfx950 -o x", "gfx"] {
        let error = clang.compile(source, arch, &options).unwrap_err();
        assert!(
            matches!(error, CompileError::BadAmdArch { .. }),
            "{arch}: {error}"
        );
    }
    let error = clang.compile(source, "gfx9999", &options).unwrap_err();
    assert!(error.to_string().contains("clang-22"), "{error}");
    assert!(
        matches!(error, CompileError::UnsupportedAmdArch { .. }),
        "{error:?}"
    );
}

#[test]
fn lds_past_the_targets_is_refused() {
    let source = |bytes: u32| {
        format!(
            "extern \"C\" __attribute__((global)) void f(int *p) {{\n  \
             static __attribute__((shared)) int s[{}];\n  \
             int t = __builtin_amdgcn_workitem_id_x();\n  s[p[t]] = t;\n  \
             __builtin_amdgcn_s_barrier();\n  p[t] = s[t];\n}}\n",
            bytes / 4
        )
    };
    let clang = clang();
    let options = HipOptions::default();
    for (arch, limit) in [("gfx942", 65536), ("gfx950", 163_840)] {
        let hsaco = clang.compile(&source(limit), arch, &options).unwrap();
        assert_eq!(hsaco.kernels()[0].lds_bytes, limit);
        let error = clang
            .compile(&source(limit + 4), arch, &options)
            .unwrap_err();
        assert!(error.to_string().contains("local memory"), "{error}");
    }
}

#[test]
fn the_identity_names_the_build_and_runs_nothing() {
    let clang = clang();
    let identity = clang.identity().unwrap();
    assert!(identity.starts_with("clang /"), "{identity}");
    assert!(identity.contains("bytes"), "{identity}");
    assert_eq!(clang.identity().unwrap(), identity);
    assert!(clang.has_amdgpu().unwrap());
    assert!(clang.linker().unwrap().is_some());
    assert!(clang.version().unwrap().contains("clang version"));
}

/// Against a stub library: there is no ROCm where these tests run.
#[test]
fn hiprtc_is_called_as_its_header_says() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libhiprtc.so");
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hip/stub_rtc.c");
    let status = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .args([&library, &source])
        .status()
        .expect("this test needs a C compiler called cc, as Rust itself does");
    assert!(status.success());
    let vars = [("TILEWRIGHT_HIPRTC", library.to_str().unwrap())];
    let env = Env::fixed(folder.path(), vars);
    let hiprtc = Hiprtc::find(&env).unwrap();
    assert_eq!(hiprtc.version(), Ok((7, 1)));
    assert!(hiprtc.identity().starts_with("hiprtc /"));

    let options = with(&[], &[]);
    let code = clang().compile(GEMM, "gfx950", &options).unwrap();
    let file = folder.path().join("gemm.hsaco");
    std::fs::write(&file, code.bytes()).unwrap();
    let toolchain = AmdToolchain::find(&env).unwrap();
    assert!(
        matches!(toolchain, AmdToolchain::Hiprtc(_)),
        "{toolchain:?}"
    );
    let source = format!("code {}", file.display());
    let hsaco = toolchain.compile(&source, "gfx950", &options).unwrap();
    assert_eq!(hsaco.kernels(), code.kernels());
    assert_eq!(hsaco.asm(), "");
    let error = toolchain
        .compile("one\ntwo;", "gfx950", &options)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the HIP compiler refused the source:\n  gemm.hip:2: error: no\n    | two;"
    );
    let error = hiprtc
        .compile("code /no/such/file", "gfx950", &options)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "hiprtcCompileProgram failed: HIPRTC_ERROR_OTHER"
    );
    // A clang that the user names and that is not there is not replaced.
    let vars = [vars[0], ("TILEWRIGHT_CLANG", "/no/such/clang")];
    assert!(AmdToolchain::find(&Env::fixed(folder.path(), vars)).is_err());
}

/// Printed, not judged: the machine may be busy. Run with `--nocapture` to see it.
#[test]
fn the_time_of_a_cold_compile() {
    let clang = clang();
    let options = with(&[], &[]);
    let mut times: Vec<_> = (0..3)
        .map(|_| {
            let start = Instant::now();
            clang.compile(GEMM, "gfx950", &options).unwrap();
            start.elapsed()
        })
        .collect();
    times.sort();
    println!(
        "gemm to a code object: {:?} at best, {:?} in the middle",
        times[0], times[1]
    );
}
