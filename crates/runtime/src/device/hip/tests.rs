//! The HIP runtime, against a stub library that is compiled here: it takes the same calls through
//! the same loader, so everything but the GPU itself is tested.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::api::{self, Api};
use super::*;
use crate::device::{Arg, KernelSpec, Launch, Model, ParamKind, ParamSpec, ScalarType};
use crate::env::Env;
use crate::toolchain::{AmdArg, AmdKernelInfo, Hsaco};

/// The compiled stub. Each test loads a copy, for the stub keeps state.
fn stub() -> &'static Path {
    static STUB: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = STUB.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libamdhip64.so.7");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hip/stub.c");
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-w"])
            .arg(&source)
            .arg("-o")
            .arg(&library)
            .status()
            .expect("this test needs a C compiler called cc, as Rust itself does");
        assert!(status.success());
        (folder, library)
    });
    path
}

struct Stub {
    api: &'static Api,
    library: libloading::Library,
    _folder: tempfile::TempDir,
}

impl Stub {
    fn load() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("libamdhip64.so.7");
        std::fs::copy(stub(), &copy).unwrap();
        let vars = [("TILEWRIGHT_HIP", folder.path().to_str().unwrap())];
        let api = api::load(&Env::fixed("/no/such/root", vars)).unwrap();
        // SAFETY: the stub has no initialisers.
        let library = unsafe { libloading::Library::new(&copy) }.unwrap();
        Self {
            api,
            library,
            _folder: folder,
        }
    }

    fn open(&self, ordinal: u32) -> Device {
        Device::open_with(self.api, ordinal).unwrap()
    }

    /// Objects of the stub that are alive.
    fn live(&self) -> i64 {
        // SAFETY: the function takes nothing and returns a long.
        unsafe {
            self.library
                .get::<extern "C" fn() -> i64>(b"stub_live\0")
                .unwrap()()
        }
    }
}

fn hsaco(arch: &str) -> Hsaco {
    let arg = |offset, size, pointer| AmdArg {
        offset,
        size,
        pointer,
    };
    let kernel = AmdKernelInfo {
        name: "add".to_owned(),
        vgprs: 8,
        lds_bytes: 1024,
        max_threads: 256,
        args: vec![arg(0, 8, true), arg(8, 4, false), arg(12, 4, false)],
        ..AmdKernelInfo::default()
    };
    Hsaco::described(arch, b"\x7fELF and so on", vec![kernel])
}

fn spec() -> KernelSpec {
    KernelSpec {
        params: vec![
            ParamSpec::new("x", ParamKind::pointer("float32")),
            ParamSpec::new("n", ParamKind::Scalar(ScalarType::I32)),
            ParamSpec::new("by", ParamKind::Scalar(ScalarType::F32)),
        ],
        origin: Some("add.py:3".to_owned()),
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|w| f32::from_le_bytes(*w)).collect()
}

#[test]
fn gpus_are_described() {
    let stub = Stub::load();
    let devices = Device::list_with(stub.api).unwrap();
    assert_eq!(devices.len(), 2);
    let info = &devices[1];
    let arch = "gfx950".to_owned();
    assert_eq!(
        (info.name.as_str(), &info.model),
        ("Stub 1", &Model::Amd { arch })
    );
    assert_eq!(
        (info.multiprocessors, info.shared_per_block, info.warp_size),
        (256, 163_840, 64)
    );
    assert_eq!(info.max_grid, [0x7fff_ffff, 65535, 65535]);
    assert_eq!((info.driver, info.memory_bytes), ((7, 1), 1 << 30));
    let error = Device::open_with(stub.api, 2).unwrap_err();
    assert_eq!(
        error,
        DeviceError::NoDevice {
            ordinal: 2,
            count: 2
        }
    );
}

#[test]
fn a_kernel_is_loaded_launched_and_timed() {
    let stub = Stub::load();
    {
        let device = stub.open(1);
        let stream = device.stream().unwrap();
        let data: Vec<u8> = (0..8).flat_map(|n| (n as f32).to_le_bytes()).collect();
        let buffer = device.upload(&data, &stream).unwrap();
        let kernel = device
            .load(&hsaco("gfx950"))
            .unwrap()
            .kernel("add", spec())
            .unwrap();
        assert_eq!(kernel.entry().params, [8, 4, 4]);
        assert_eq!(kernel.blocks_per_multiprocessor(256, 0), Ok(8));
        let (start, end) = (device.event().unwrap(), device.event().unwrap());
        stream.record(&start).unwrap();
        let args = [(&buffer).into(), Arg::I32(6), Arg::F32(0.5)];
        kernel
            .launch(&Launch::new([1, 1, 1], [64, 1, 1]), &stream, &args)
            .unwrap();
        stream.record(&end).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(end.since(&start).unwrap().as_millis(), 1);
        let got = floats(&buffer.to_vec(&stream).unwrap());
        assert_eq!(got, [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.0, 7.0]);
        let mut together = Launch::new([1, 1, 1], [64, 1, 1]);
        together.cooperative = true;
        kernel.launch(&together, &stream, &args).unwrap();
        let got = floats(&buffer.to_vec(&stream).unwrap());
        assert_eq!(got[..3], [1.0, 2.0, 3.0]);
        buffer.fill_words(0x3f80_0000, &stream).unwrap();
        let copy = device.zeros(32, &stream).unwrap();
        copy.copy_from(&buffer, &stream).unwrap();
        assert_eq!(floats(&copy.to_vec(&stream).unwrap()), [1.0; 8]);
        assert!(stub.live() > 0);
    }
    assert_eq!(stub.live(), 0);
}

#[test]
fn the_threads_own_device_is_put_back() {
    let stub = Stub::load();
    let device = stub.open(1);
    device.synchronize().unwrap();
    // SAFETY: the function takes nothing and returns an int.
    let current = unsafe {
        stub.library
            .get::<extern "C" fn() -> i32>(b"stub_current\0")
    };
    assert_eq!(current.unwrap()(), 0);
}

#[test]
fn wrong_launches_are_refused_before_they_reach_the_runtime() {
    let stub = Stub::load();
    let device = stub.open(0);
    let stream = device.stream().unwrap();
    let buffer = device.zeros(64, &stream).unwrap();
    let kernel = device
        .load(&hsaco("gfx950"))
        .unwrap()
        .kernel("add", spec())
        .unwrap();
    let refused = |launch: Launch, args: &[Arg<'_>]| {
        kernel
            .launch(&launch, &stream, args)
            .unwrap_err()
            .to_string()
    };
    let one = Launch::new([1, 1, 1], [64, 1, 1]);
    let good = [(&buffer).into(), Arg::I32(1), Arg::F32(1.0)];
    for (launch, args, text) in [
        (one, &good[..2], "takes 3 arguments and was given 2"),
        (
            one,
            &[Arg::I32(1), Arg::I32(1), Arg::F32(1.0)],
            "must be a buffer of float32",
        ),
        (
            one,
            &[(&buffer).into(), Arg::F32(1.0), Arg::F32(1.0)],
            "`n` must be an int32",
        ),
        (
            one,
            &[buffer.of("float16").into(), Arg::I32(1), Arg::F32(1.0)],
            "must hold float32",
        ),
        (
            one,
            &[buffer.view(4).unwrap().into(), Arg::I32(1), Arg::F32(1.0)],
            "aligned to 16",
        ),
        (Launch::new([1, 1, 1], [512, 1, 1]), &good, "allows 256"),
        (Launch::new([0, 1, 1], [64, 1, 1]), &good, "is empty"),
        (
            Launch::new([1, 70_000, 1], [64, 1, 1]),
            &good,
            "larger than the GPU's",
        ),
        (one.cluster([1, 1, 1]), &good, "this GPU has no clusters"),
        (one.shared(163_000), &good, "the GPU has 163840 for a block"),
    ] {
        let got = refused(launch, args);
        assert!(got.contains(text), "{got}");
    }
    let other = stub.open(1);
    let elsewhere = other.zeros(64, &other.default_stream()).unwrap();
    let got = refused(one, &[(&elsewhere).into(), Arg::I32(1), Arg::F32(1.0)]);
    assert!(got.contains("is on GPU 1 and the kernel on GPU 0"), "{got}");
    assert!(buffer.write(60, &[0; 8], &stream).is_err());
}

#[test]
fn code_that_does_not_fit_is_refused() {
    let stub = Stub::load();
    let device = stub.open(0);
    let error = device.load(&hsaco("gfx942")).unwrap_err().to_string();
    assert_eq!(
        error,
        "the kernel was compiled for gfx942 and the GPU is gfx950 (Stub 0)"
    );
    let bad = Hsaco::described("gfx950", b"refused", Vec::new());
    let error = device.load(&bad).unwrap_err().to_string();
    assert!(error.contains("ROCm 7.1"), "{error}");
    let module = device.load(&hsaco("gfx950")).unwrap();
    let error = module.kernel("sub", spec()).unwrap_err().to_string();
    assert!(error.contains("no kernel `sub`"), "{error}");
    let mut short = spec();
    short.params[1].kind = ParamKind::Scalar(ScalarType::I64);
    let error = module.kernel("add", short).unwrap_err().to_string();
    assert!(
        error.contains("has 4 bytes in its code and 8 in its description"),
        "{error}"
    );
    let error = device.alloc(1 << 30).unwrap_err().to_string();
    assert!(
        error.contains("no room for 1.0 GiB: 512.0 MiB of 1.0 GiB are free"),
        "{error}"
    );
}

#[test]
fn a_fault_is_named_and_the_device_can_be_opened_again() {
    let stub = Stub::load();
    let device = stub.open(0);
    let stream = device.stream().unwrap();
    let buffer = device.zeros(64, &stream).unwrap();
    let kernel = device
        .load(&hsaco("gfx950"))
        .unwrap()
        .kernel("add", spec())
        .unwrap();
    let args = [(&buffer).into(), Arg::I32(1), Arg::F32(1.0)];
    kernel
        .launch(&Launch::new([1, 13, 1], [64, 1, 1]), &stream, &args)
        .unwrap();
    assert!(!stream.is_done().unwrap());
    let error = stream.synchronize().unwrap_err().to_string();
    assert_eq!(
        error,
        "kernel `add` (add.py:3) faulted on GPU 0: an illegal memory access was encountered \
         (hipErrorIllegalAddress, noticed by hipStreamSynchronize)"
    );
    assert!(device.is_lost());
    assert!(matches!(device.memory(), Err(DeviceError::Lost(_))));
    let again = stub.open(0);
    let stream = again.default_stream();
    let fresh = again.zeros(64, &stream).unwrap();
    // What is left of the old device is of no use on the new one.
    assert!(matches!(
        fresh.copy_from(&buffer, &stream),
        Err(DeviceError::Lost(_))
    ));
    assert!(stub.open(1).memory().is_ok());
}

#[test]
fn a_missing_or_foreign_library_is_named() {
    let root = tempfile::tempdir().unwrap();
    let error = api::load(&Env::fixed(root.path(), []))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("the HIP runtime (libamdhip64.so) was not found"),
        "{error}"
    );
    assert!(error.contains("install ROCm"), "{error}");
    let foreign = root.path().join("libamdhip64.so");
    std::fs::write(&foreign, "no library").unwrap();
    let vars = [("TILEWRIGHT_HIP", foreign.to_str().unwrap())];
    let error = api::load(&Env::fixed(root.path(), vars))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("set TILEWRIGHT_HIP to another libamdhip64.so"),
        "{error}"
    );
}
