//! A kernel that there is no memory to emulate is refused where it stands, with what would help. No
//! GPU is needed, clang is.

#[expect(dead_code, reason = "the list of examples is for other tests")]
mod corpus;

use tilewright::emulate::{Emulator, Options};
use tilewright::ir::{Diagnostic, Func, Target};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{AmdClang, HipOptions};
use tilewright::sim::{self, InputSpec};

/// Emulates an example in so many bytes of memory.
fn emulated(
    file: &str,
    settings: &[(&str, &str)],
    room: u64,
) -> (Func, Result<(), Vec<Diagnostic>>) {
    let target = Target::Gfx950;
    let (func, source) = corpus::generated(file, settings, target).expect("an example");
    let clang = AmdClang::find(&Env::process()).expect("clang: run scripts/setup-clang");
    let options = HipOptions::default();
    let code = clang.assembly(&source.text, target.name(), &options);
    let code = code.expect("an example compiles");
    let emulator = Emulator::of_assembly(&func, target, source, &code).expect("an emulator");
    let mut args = sim::make_inputs(&func, &InputSpec::default()).expect("inputs");
    let options = Options {
        room: Some(room),
        threads: 2,
        ..Options::default()
    };
    let ran = emulator.run(&mut args, &options);
    let ran = ran.map(drop).map_err(|error| error.into_diagnostics());
    (func, ran)
}

const SMALL: [(&str, &str); 3] = [("M", "256"), ("N", "256"), ("K", "64")];

#[test]
fn what_does_not_fit_is_refused_at_the_kernel() {
    for (file, room, note, help) in [
        ("gemm.py", 4 << 20, "of 2 blocks at a time", "fewer blocks"),
        // Waves sleep until others have gone on.
        (
            "warp_specialized_gemm.py",
            4 << 20,
            "may wait for each other",
            "a smaller grid",
        ),
        (
            "gemm.py",
            1 << 20,
            "who touched which element",
            "smaller sizes",
        ),
    ] {
        let (func, ran) = emulated(file, &SMALL, room);
        let found = ran.expect_err("there is no room");
        let [diag] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(diag.code.0, "out-of-memory", "{diag:?}");
        assert!(
            func.kernels.iter().any(|k| k.span == diag.primary.span),
            "{diag:?}"
        );
        assert!(diag.message.contains("are needed"), "{diag:?}");
        assert!(diag.notes[0].contains(note), "{diag:?}");
        assert!(diag.help[0].contains(help), "{diag:?}");
    }
    // Not even the tensors.
    let (func, ran) = emulated("gemm.py", &SMALL, 1000);
    let found = ran.expect_err("there is no room");
    assert_eq!(
        (found[0].code.0, found[0].primary.span),
        ("out-of-memory", func.span)
    );
}

#[test]
fn what_fits_is_run() {
    let (_, ran) = emulated("gemm.py", &SMALL, 1 << 30);
    assert!(ran.is_ok(), "{ran:?}");
}
