//! Which options a kernel may pass to the target's compiler.
//!
//! Flags come with the kernel, and a kernel is often somebody else's: what would load code into
//! the compiler, run another program or write files is not passed on. What changes the code that
//! is generated, its precision or its debug information is.

/// Flags that are passed on as they are.
const WHOLE: &[&str] = &[
    "-g",
    "-G",
    "-w",
    "-lineinfo",
    "--generate-line-info",
    "--device-debug",
    "--use_fast_math",
    "-use_fast_math",
    "--restrict",
    "-restrict",
    "--extra-device-vectorization",
    "--expt-relaxed-constexpr",
    "--expt-extended-lambda",
    "--disable-warnings",
    "-ffast-math",
    "-fno-fast-math",
    "-ffinite-math-only",
    "-fno-finite-math-only",
    "-fassociative-math",
    "-fno-associative-math",
    "-freciprocal-math",
    "-fno-reciprocal-math",
    "-fsigned-zeros",
    "-fno-signed-zeros",
    "-ftrapping-math",
    "-fno-trapping-math",
    "-fmath-errno",
    "-fno-math-errno",
    "-funsafe-math-optimizations",
    "-fno-unsafe-math-optimizations",
    "-fgpu-flush-denormals-to-zero",
    "-fno-gpu-flush-denormals-to-zero",
    "-fgpu-approx-transcendentals",
    "-fno-gpu-approx-transcendentals",
    "-fstrict-aliasing",
    "-fno-strict-aliasing",
    "-fvectorize",
    "-fno-vectorize",
    "-fslp-vectorize",
    "-fno-slp-vectorize",
    "-funroll-loops",
    "-fno-unroll-loops",
    "-mcumode",
    "-mno-cumode",
    "-mtgsplit",
    "-mno-tgsplit",
    "-mamdgpu-ieee",
    "-mno-amdgpu-ieee",
    "-munsafe-fp-atomics",
    "-mno-unsafe-fp-atomics",
];

/// Flags with a value of letters, digits and a few marks behind `=`.
const VALUED: &[&str] = &[
    "-std",
    "--std",
    "-maxrregcount",
    "--maxrregcount",
    "-ftz",
    "--ftz",
    "-fmad",
    "--fmad",
    "-prec-div",
    "--prec-div",
    "-prec-sqrt",
    "--prec-sqrt",
    "--split-compile",
    "--dopt",
    "-ffp-contract",
    "-fdenormal-fp-math",
    "-mcode-object-version",
];

/// Options of ptxas behind `--ptxas-options=` or `-Xptxas=`, separated by commas.
const PTXAS: &[&str] = &[
    "-v",
    "--verbose",
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "--warn-on-spills",
    "--warn-on-local-memory-usage",
    "--allow-expensive-optimizations=true",
    "--allow-expensive-optimizations=false",
    "-dlcm=ca",
    "-dlcm=cg",
];

/// What may be given, in words.
pub const ALLOWED: &str = "optimisation (`-O3`), macros (`-DNAME=VALUE`, `-UNAME`), include \
     folders (`-IPATH`), precision (`--use_fast_math`, `--fmad=`, `-ffast-math` and its parts, \
     `-ffp-contract=`), `--maxrregcount=`, `-std=`, `-Xptxas=`, debug information (`-g`, \
     `-lineinfo`), warnings (`-W…`, `-w`) and `-m…` options of AMD's code";

/// Whether the flag may be passed to the target's compiler, as one argument.
pub fn is_allowed(flag: &str) -> bool {
    if WHOLE.contains(&flag) {
        return true;
    }
    if let Some((name, value)) = flag.split_once('=') {
        let plain = |c: char| c.is_ascii_alphanumeric() || "+-_.,".contains(c);
        if VALUED.contains(&name) && !value.is_empty() && value.chars().all(plain) {
            return true;
        }
        if matches!(name, "-Xptxas" | "--ptxas-options") {
            return value.split(',').all(|one| PTXAS.contains(&one));
        }
    }
    let Some(rest) = flag.strip_prefix('-') else {
        return false;
    };
    let mut letters = rest.chars();
    match letters.next() {
        Some('O') => matches!(letters.as_str(), "0" | "1" | "2" | "3" | "s" | "z" | "fast"),
        Some('D' | 'U') => letters
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_'),
        Some('I') => !letters.as_str().is_empty(),
        // `-Wl,…`, `-Wa,…` and `-Wp,…` hand options to other programs.
        Some('W') => letters.all(|c| c.is_ascii_alphanumeric() || "-_=+".contains(c)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shapes_the_code_is_passed_on() {
        for flag in [
            "-O3",
            "-DBLOCK=128",
            "-DTEXT=a b",
            "-UNDEBUG",
            "--use_fast_math",
            "-ffast-math",
            "-ffp-contract=off",
            "--maxrregcount=64",
            "-std=c++20",
            "-Xptxas=-v,-O3",
            "-Wno-unused-value",
            "-munsafe-fp-atomics",
        ] {
            assert!(is_allowed(flag), "{flag}");
        }
    }

    #[test]
    fn what_loads_code_or_runs_programs_is_not() {
        for flag in [
            "",
            "-",
            "x.o",
            "@options",
            "-fplugin=nowhere.so",
            "-fpass-plugin=nowhere.so",
            "-Xclang",
            "-mllvm",
            "-mllvm=-load=nowhere.so",
            "-load",
            "-Wl,--script=x",
            "-Wp,-x",
            "-o",
            "-ofile",
            "-B/bin",
            "--config=x",
            "-include",
            "-imacros/etc/x",
            "-Xptxas=-o,file",
            "--ptxas-options=--options-file=x",
            "-std=c++20\n-load",
            "--compiler-bindir=/bin",
            "-ccbin=/bin/sh",
            "-fprofile-generate=/x",
            "-save-temps",
            "-D",
            "-I",
        ] {
            assert!(!is_allowed(flag), "{flag}");
        }
    }
}
