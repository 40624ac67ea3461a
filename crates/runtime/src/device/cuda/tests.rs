//! The device layer against a driver of our own; `examples/smoke.rs` runs on a real one.

use std::time::{Duration, Instant};

use super::api::function_attribute;
use super::fake::{self, Launched, with};
use super::*;
use crate::device::{
    Arg, Buffer, Kernel, KernelSpec, Launch, ParamKind, ParamSpec, ScalarType, Stream,
};
use crate::toolchain::cubin::Param;
use crate::toolchain::{Cubin, KernelInfo};

/// The code of a kernel `add(float16* a, int32 n, TensorMap map)`.
fn cubin(arch: &str) -> Cubin {
    let param = |offset, size| Param { offset, size };
    cubin_with(arch, vec![param(0, 8), param(8, 4), param(64, 128)])
}

fn cubin_with(arch: &str, params: Vec<Param>) -> Cubin {
    let add = KernelInfo {
        name: "add".to_owned(),
        registers: 32,
        static_shared: 1024,
        stack: 0,
        spills: None,
        params,
        max_threads: Some(256),
        code_bytes: 128,
    };
    Cubin::described(arch, vec![add])
}

fn spec() -> KernelSpec {
    let pointer = ParamKind::Pointer {
        dtype: Some("float16".to_owned()),
        align: 16,
        min_bytes: 64,
    };
    KernelSpec {
        params: vec![
            ParamSpec::new("a", pointer),
            ParamSpec::new("n", ParamKind::Scalar(ScalarType::I32)),
            ParamSpec::new("map", ParamKind::Bytes { size: 128 }),
        ],
        origin: Some("add.py:3".to_owned()),
    }
}

struct Setup {
    device: Device,
    stream: Stream,
    kernel: Kernel,
    buffer: Buffer,
}

const MAP: [u8; 128] = [7; 128];

fn setup() -> Setup {
    let api = fake::driver(2, (9, 0));
    with(|state| state.params = vec![8, 4, 128]);
    let device = Device::open_with(api, 0).unwrap();
    let stream = device.stream().unwrap();
    let module = device.load(&cubin("sm_90a")).unwrap();
    let kernel = module.kernel("add", spec()).unwrap();
    let buffer = device.alloc(256).unwrap();
    Setup {
        device,
        stream,
        kernel,
        buffer,
    }
}

fn shape() -> Launch {
    Launch::new([4, 1, 1], [128, 1, 1])
}

fn args<'a>(buffer: &'a Buffer) -> [Arg<'a>; 3] {
    [buffer.into(), Arg::I32(-5), Arg::Bytes(&MAP)]
}

/// What a refused launch says.
fn refused(setup: &Setup, launch: &Launch, args: &[Arg<'_>]) -> String {
    let before = with(|state| state.launches.len());
    let error = setup
        .kernel
        .launch(launch, &setup.stream, args)
        .unwrap_err();
    assert!(matches!(error, DeviceError::Launch(_)), "{error:?}");
    assert_eq!(
        with(|state| state.launches.len()),
        before,
        "it was launched"
    );
    error.to_string()
}

#[test]
fn no_driver_is_an_error_everywhere_and_no_panic() {
    // On a machine with a GPU the real driver answers; `api.rs` tests the missing one directly.
    for result in [list().map(|_| ()), open(0).map(|_| ())] {
        if let Err(error) = result {
            let text = error.to_string();
            let known = matches!(
                error,
                DeviceError::NoDriver { .. } | DeviceError::NoDevice { .. }
            );
            assert!(known, "{text}");
        }
    }
    let none = fake::driver(0, (9, 0));
    assert!(none.start().is_ok());
    assert_eq!(none.devices(), Ok(0));
    assert_eq!(
        Device::open_with(none, 0).unwrap_err().to_string(),
        "there is no GPU 0: the driver sees none at all"
    );
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    let api = fake::driver(2, (9, 0));
    assert_eq!(
        Device::open_with(api, 2).unwrap_err().to_string(),
        "there is no GPU 2: the driver sees 2, counted from 0"
    );
    let device = Device::open_with(api, 1).unwrap();
    assert_eq!(
        (device.ordinal(), device.info().name.as_str()),
        (1, "Fake GPU")
    );
    assert_eq!(
        (device.info().arch().as_str(), device.info().driver),
        ("sm_90a", (13, 0))
    );
}

#[test]
fn code_runs_where_its_target_says() {
    let api = fake::driver(1, (8, 6));
    let device = Device::open_with(api, 0).unwrap();
    assert_eq!(device.info().arch(), "sm_86");
    let runs = |arch| device.info().runs(arch);
    assert!(runs("sm_80") && runs("sm_86") && runs("sm_86a") && runs("sm_80f"));
    assert!(!runs("sm_89") && !runs("sm_75") && !runs("sm_90a") && !runs("sm_80a"));
    assert!(!runs("gfx950") && !runs("sm_") && !runs(""));
    assert_eq!(
        device.load(&cubin("sm_90a")).unwrap_err().to_string(),
        "the kernel was compiled for sm_90a and the GPU is sm_86 (Fake GPU)"
    );
}

#[test]
fn everything_is_given_back() {
    let held = |state: &mut fake::State| {
        (
            state.retained[0],
            state.streams,
            state.events,
            state.modules,
            state.memory.len(),
        )
    };
    let Setup {
        device,
        stream,
        kernel,
        buffer,
    } = setup();
    let event = device.event().unwrap();
    let again = Device::open_with(device.context.driver, 0).unwrap();
    assert_eq!(
        with(held),
        (1, 1, 1, 1, 1),
        "opening again shares the context"
    );
    drop((device, again));
    drop(buffer);
    assert_eq!(with(held), (1, 1, 1, 1, 0));
    drop((stream, event));
    assert_eq!(
        with(held),
        (1, 0, 0, 1, 0),
        "the kernel keeps its module and context"
    );
    drop(kernel);
    assert_eq!(with(held), (0, 0, 0, 0, 0));
}

#[test]
fn memory_is_copied_filled_and_checked() {
    let Setup { device, stream, .. } = setup();
    let a = device.upload(&[1, 2, 3, 4, 5, 6, 7, 8], &stream).unwrap();
    let b = device.zeros(12, &stream).unwrap();
    b.copy_from(&a, &stream).unwrap();
    assert_eq!(
        b.to_vec(&stream).unwrap(),
        [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]
    );
    b.fill_words(0x0403_0201, &stream).unwrap();
    b.write(9, &[9], &stream).unwrap();
    assert_eq!(
        b.to_vec(&stream).unwrap(),
        [1, 2, 3, 4, 1, 2, 3, 4, 1, 9, 3, 4]
    );
    let mut part = [0; 2];
    b.read(8, &mut part, &stream).unwrap();
    assert_eq!(part, [1, 9]);
    assert_eq!(
        b.write(11, &[0; 2], &stream).unwrap_err().to_string(),
        "a write of 2 bytes at offset 11 does not fit a buffer of 12 bytes"
    );
    assert!(b.read(usize::MAX, &mut part, &stream).is_err());
    assert!(a.copy_from(&b, &stream).is_err());
    assert!(b.view(13).is_err());
    let empty = device.upload(&[], &stream).unwrap();
    assert_eq!(
        (empty.address(), empty.to_vec(&stream).unwrap()),
        (0, vec![])
    );
    empty.fill(1, &stream).unwrap();
    b.copy_from(&empty, &stream).unwrap();
}

#[test]
fn too_large_an_allocation_says_what_is_free() {
    let Setup { device, .. } = setup();
    with(|state| state.memory_left = 5 << 20);
    assert_eq!(
        device.alloc(3 << 30).unwrap_err().to_string(),
        "the GPU has no room for 3.0 GiB: 5.0 MiB of 1.0 GiB are free"
    );
}

#[test]
fn a_launch_hands_over_the_arguments() {
    let setup = setup();
    let view = setup.buffer.view(32).unwrap();
    let launch = shape().shared(2048);
    let args = [view.into(), Arg::I32(-5), Arg::Bytes(&MAP)];
    setup.kernel.launch(&launch, &setup.stream, &args).unwrap();
    let expected = Launched {
        grid: [4, 1, 1],
        block: [128, 1, 1],
        shared: 2048,
        cluster: None,
        args: vec![
            (setup.buffer.address() + 32).to_le_bytes().to_vec(),
            (-5i32).to_le_bytes().to_vec(),
            MAP.to_vec(),
        ],
    };
    assert_eq!(with(|state| state.launches.clone()), [expected]);
}

#[test]
fn every_scalar_type_keeps_its_bits() {
    let cases: &[(ScalarType, Arg<'_>, &[u8])] = &[
        (ScalarType::Bool, Arg::Bool(true), &[1]),
        (ScalarType::I8, Arg::I8(-2), &[0xfe]),
        (ScalarType::I16, Arg::I16(-2), &[0xfe, 0xff]),
        (ScalarType::I32, Arg::I32(-2), &[0xfe, 0xff, 0xff, 0xff]),
        (ScalarType::I64, Arg::I64(-2), &(-2i64).to_le_bytes()),
        (ScalarType::U8, Arg::U8(200), &[200]),
        (ScalarType::U16, Arg::U16(0x1234), &[0x34, 0x12]),
        (ScalarType::U32, Arg::U32(7), &[7, 0, 0, 0]),
        (
            ScalarType::U64,
            Arg::U64(1 << 40),
            &(1u64 << 40).to_le_bytes(),
        ),
        (ScalarType::F16, Arg::F16(0x3c00), &[0, 0x3c]),
        (ScalarType::BF16, Arg::BF16(0x3f80), &[0x80, 0x3f]),
        (ScalarType::F32, Arg::F32(1.5), &1.5f32.to_le_bytes()),
        (ScalarType::F64, Arg::F64(-0.1), &(-0.1f64).to_le_bytes()),
    ];
    let setup = setup();
    for (scalar, arg, bytes) in cases {
        let size = scalar.bytes();
        let code = cubin_with("sm_90a", vec![Param { offset: 0, size }]);
        with(|state| state.params = vec![size as usize]);
        let spec = KernelSpec {
            params: vec![ParamSpec::new("x", ParamKind::Scalar(*scalar))],
            origin: None,
        };
        let kernel = setup
            .device
            .load(&code)
            .unwrap()
            .kernel("add", spec)
            .unwrap();
        kernel.launch(&shape(), &setup.stream, &[*arg]).unwrap();
        let got = with(|state| state.launches.pop()).unwrap();
        assert_eq!(got.args, [bytes.to_vec()], "{scalar}");
        assert_eq!(arg.bytes(), Some(bytes.to_vec()), "{scalar}");
        // Any other type is refused.
        for (other, wrong, _) in cases.iter().filter(|(other, ..)| other != scalar) {
            let error = kernel
                .launch(&shape(), &setup.stream, &[*wrong])
                .unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("kernel `add`: argument 0 `x` must be {scalar} and is {other}")
            );
        }
    }
}

#[test]
fn wrong_arguments_are_refused_in_words() {
    let setup = setup();
    let good = args(&setup.buffer);
    let with_first = |arg| refused(&setup, &shape(), &[arg, good[1], good[2]]);
    assert_eq!(
        refused(&setup, &shape(), &good[..2]),
        "kernel `add`: it takes 3 arguments and was given 2"
    );
    assert_eq!(
        with_first(Arg::F32(1.0)),
        "kernel `add`: argument 0 `a` must be a buffer of float16 and is a float32"
    );
    assert_eq!(
        with_first(setup.buffer.of("float32").into()),
        "kernel `add`: argument 0 `a` must hold float16 and holds float32"
    );
    assert_eq!(
        with_first(setup.buffer.view(208).unwrap().into()),
        "kernel `add`: argument 0 `a` must have 64 bytes and has 48"
    );
    assert_eq!(
        with_first(setup.buffer.view(8).unwrap().into()),
        format!(
            "kernel `add`: argument 0 `a` must be aligned to 16 bytes and starts at {:#x}",
            setup.buffer.address() + 8
        )
    );
    assert_eq!(
        refused(
            &setup,
            &shape(),
            &[good[0], (&setup.buffer).into(), good[2]]
        ),
        "kernel `add`: argument 1 `n` must be an int32 and is a buffer"
    );
    assert_eq!(
        refused(
            &setup,
            &shape(),
            &[good[0], good[1], Arg::Bytes(&MAP[..64])]
        ),
        "kernel `add`: argument 2 `map` is passed as 128 bytes and was given 64"
    );
    let other = Device::open_with(setup.device.context.driver, 1).unwrap();
    let elsewhere = other.alloc(256).unwrap();
    assert_eq!(
        with_first((&elsewhere).into()),
        "kernel `add`: argument 0 `a` is on GPU 1 and the kernel on GPU 0"
    );
    let stream = other.stream().unwrap();
    assert_eq!(
        setup
            .kernel
            .launch(&shape(), &stream, &good)
            .unwrap_err()
            .to_string(),
        "kernel `add`: the stream is on GPU 1 and the kernel on GPU 0"
    );
    assert_eq!(
        elsewhere.fill(0, &setup.stream).unwrap_err().to_string(),
        "the stream is on GPU 0 and should be on GPU 1"
    );
    // A buffer that says it holds float16 passes.
    let named = [setup.buffer.of("float16").into(), good[1], good[2]];
    setup
        .kernel
        .launch(&shape(), &setup.stream, &named)
        .unwrap();
}

#[test]
fn wrong_shapes_are_refused_in_words() {
    let setup = setup();
    let args = args(&setup.buffer);
    let say = |launch: Launch| refused(&setup, &launch, &args);
    assert_eq!(
        say(Launch::new([0, 1, 1], [128, 1, 1])),
        "kernel `add`: a grid of [0, 1, 1] blocks of [128, 1, 1] threads is empty"
    );
    assert_eq!(
        say(Launch::new([1, 65_536, 1], [128, 1, 1])),
        "kernel `add`: a grid of [1, 65536, 1] blocks is larger than the GPU's \
         [2147483647, 65535, 65535]"
    );
    assert_eq!(
        say(Launch::new([1, 1, 1], [16, 17, 1])),
        "kernel `add`: a block of [16, 17, 1] has 272 threads and the kernel allows 256"
    );
    assert!(say(Launch::new([1, 1, 1], [1, 1, 65])).contains("a block of [1, 1, 65]"));
    let huge = Launch::new([1, 1, 1], [u32::MAX; 3]);
    assert!(say(huge).contains(&format!("has {} threads", u64::MAX)));
    assert_eq!(
        say(shape().shared(232_448)),
        "kernel `add`: it needs 232448 bytes of dynamic and 1024 of static shared memory, and \
         the GPU has 232448 for a block; use smaller tiles or fewer stages"
    );
    assert!(say(shape().cluster([3, 1, 1])).contains("the grid is not a multiple of it"));
    assert!(say(shape().cluster([0, 1, 1])).contains("1 to 16 blocks"));
    assert!(say(shape().cluster([u32::MAX; 3])).contains("1 to 16 blocks"));
}

#[test]
fn much_shared_memory_is_asked_for_once() {
    let setup = setup();
    let args = args(&setup.buffer);
    let launch = |shared| {
        let shape = shape().shared(shared);
        setup.kernel.launch(&shape, &setup.stream, &args).unwrap();
        with(|state| state.function_attributes.clone())
    };
    let asked = function_attribute::MAX_DYNAMIC_SHARED;
    assert_eq!(launch(49_152), []);
    assert_eq!(launch(100_000), [(asked, 100_000)]);
    assert_eq!(launch(100_000), [(asked, 100_000)]);
    assert_eq!(launch(50_000), [(asked, 100_000)]);
    assert_eq!(launch(200_000), [(asked, 100_000), (asked, 200_000)]);
    assert_eq!(setup.kernel.blocks_per_multiprocessor(128, 210_000), Ok(1));
    assert_eq!(with(|state| state.function_attributes.len()), 3);
}

#[test]
fn clusters_go_through_the_extended_launch() {
    let setup = setup();
    let args = args(&setup.buffer);
    let launch = |grid, cluster| {
        let shape = Launch::new(grid, [128, 1, 1]).cluster(cluster);
        setup.kernel.launch(&shape, &setup.stream, &args).unwrap();
        with(|state| state.launches.pop()).unwrap()
    };
    let small = launch([4, 2, 1], [2, 2, 1]);
    assert_eq!(
        (small.cluster, small.args[2].as_slice()),
        (Some([2, 2, 1]), MAP.as_slice())
    );
    assert_eq!(with(|state| state.function_attributes.clone()), []);
    launch([16, 1, 1], [16, 1, 1]);
    let asked = (function_attribute::NON_PORTABLE_CLUSTER, 1);
    assert_eq!(with(|state| state.function_attributes.clone()), [asked]);
}

#[test]
fn a_description_that_does_not_match_the_code_is_refused() {
    let setup = setup();
    let module = setup.device.load(&cubin("sm_90")).unwrap();
    let mut short = spec();
    short.params.pop();
    assert_eq!(
        module.kernel("add", short).unwrap_err().to_string(),
        "kernel `add`: its code has 3 parameters and its description 2"
    );
    let mut wide = spec();
    wide.params[1].kind = ParamKind::Scalar(ScalarType::I64);
    assert_eq!(
        module.kernel("add", wide).unwrap_err().to_string(),
        "kernel `add`: parameter 1 `n` has 4 bytes in its code and 8 in its description"
    );
    assert_eq!(
        module.kernel("sub", spec()).unwrap_err().to_string(),
        "there is no kernel `sub` in the module; it has add"
    );
}

#[test]
fn a_driver_too_old_for_the_code_says_so() {
    let setup = setup();
    with(|state| state.fail = Some(("cuModuleLoadData", 209)));
    let text = setup.device.load(&cubin("sm_90a")).unwrap_err().to_string();
    assert!(text.contains("the driver supports CUDA 13.0"), "{text}");
}

#[test]
fn a_fault_names_the_kernel_and_the_process_goes_on() {
    let setup = setup();
    let old = &setup;
    with(|state| state.fault = Some(700));
    old.kernel
        .launch(&shape(), &old.stream, &args(&old.buffer))
        .unwrap();
    let fault = old.stream.synchronize().unwrap_err();
    assert_eq!(
        fault.to_string(),
        "kernel `add` (add.py:3) faulted on GPU 0: an illegal memory access was encountered \
         (CUDA_ERROR_ILLEGAL_ADDRESS, noticed by cuStreamSynchronize)"
    );
    assert!(matches!(fault, DeviceError::Fault(_)) && old.device.is_lost());
    // Everything of the dead context says so, and asks the driver nothing.
    let lost = old.buffer.to_vec(&old.stream).unwrap_err();
    assert!(matches!(lost, DeviceError::Lost(_)), "{lost:?}");
    assert!(
        lost.to_string().contains("open the device again to go on"),
        "{lost}"
    );
    assert!(matches!(old.device.alloc(1), Err(DeviceError::Lost(_))));

    let device = Device::open_with(old.device.context.driver, 0).unwrap();
    assert!(!device.is_lost());
    let stream = device.stream().unwrap();
    let kernel = device
        .load(&cubin("sm_90a"))
        .unwrap()
        .kernel("add", spec())
        .unwrap();
    let buffer = device.zeros(256, &stream).unwrap();
    kernel.launch(&shape(), &stream, &args(&buffer)).unwrap();
    stream.synchronize().unwrap();
    // What is left of the dead context cannot be mixed in, in either place.
    for (kernel, stream, buffer) in [
        (&kernel, &stream, &old.buffer),
        (&kernel, &old.stream, &buffer),
        (&old.kernel, &stream, &buffer),
    ] {
        let mixed = kernel.launch(&shape(), stream, &args(buffer));
        assert!(matches!(mixed, Err(DeviceError::Lost(_))), "{mixed:?}");
    }
    // Dropping the dead objects must not touch the new context's.
    let held = |state: &mut fake::State| {
        (
            state.retained[0],
            state.streams,
            state.modules,
            state.memory.len(),
        )
    };
    let before = with(held);
    drop(setup);
    assert_eq!(with(held), before);
    drop((device, stream, kernel, buffer));
    assert_eq!(with(held), (0, 0, 0, 0));
}

#[test]
fn several_suspects_are_all_named() {
    let Setup {
        device,
        stream,
        kernel,
        buffer,
    } = setup();
    let mut other = spec();
    other.origin = None;
    let module = device.load(&cubin("sm_90a")).unwrap();
    let second = module.kernel("add", other).unwrap();
    let side = device.stream().unwrap();
    // A kernel whose stream was synchronised since is no suspect.
    second.launch(&shape(), &side, &args(&buffer)).unwrap();
    side.synchronize().unwrap();
    kernel.launch(&shape(), &stream, &args(&buffer)).unwrap();
    let names = |error: DeviceError| match error {
        DeviceError::Fault(fault) => fault.kernels.clone(),
        other => panic!("{other:?}"),
    };
    with(|state| state.fault = Some(719));
    second.launch(&shape(), &stream, &args(&buffer)).unwrap();
    let error = device.synchronize().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("one of the kernels `add` (add.py:3), `add` faulted")
    );
    assert_eq!(names(error), ["`add` (add.py:3)", "`add`"]);
}

#[test]
fn an_error_that_is_no_fault_leaves_the_device_usable() {
    let setup = setup();
    with(|state| state.fail = Some(("cuLaunchKernel", 701)));
    let launched = setup
        .kernel
        .launch(&shape(), &setup.stream, &args(&setup.buffer));
    assert_eq!(
        launched.unwrap_err().to_string(),
        "cuLaunchKernel failed: no description (CUDA error 701)"
    );
    assert!(!setup.device.is_lost());
    setup
        .kernel
        .launch(&shape(), &setup.stream, &args(&setup.buffer))
        .unwrap();
}

#[test]
fn a_device_that_stays_dead_is_reported() {
    let setup = setup();
    with(|state| {
        state.fault = Some(700);
        state.unrecoverable = true;
    });
    setup
        .kernel
        .launch(&shape(), &setup.stream, &args(&setup.buffer))
        .unwrap();
    setup.device.synchronize().unwrap_err();
    let text = Device::open_with(setup.device.context.driver, 0)
        .unwrap_err()
        .to_string();
    assert!(text.contains("start the process again"), "{text}");
}

#[test]
fn the_context_of_another_library_is_put_back() {
    let setup = setup();
    with(|state| state.current = 0xabc);
    setup.device.synchronize().unwrap();
    setup
        .kernel
        .launch(&shape(), &setup.stream, &args(&setup.buffer))
        .unwrap();
    assert_eq!(with(|state| state.current), 0xabc);
}

#[test]
fn borrowed_memory_and_streams_are_not_freed() {
    let setup = setup();
    // SAFETY: the memory and the stream belong to the setup, which outlives the borrowers.
    let (memory, stream) = unsafe {
        (
            setup.device.borrow_memory(setup.buffer.address(), 256),
            setup.device.borrow_stream(0x5001 as *mut _),
        )
    };
    setup
        .kernel
        .launch(&shape(), &stream, &args(&memory))
        .unwrap();
    drop((memory, stream));
    assert_eq!(with(|state| (state.memory.len(), state.streams)), (1, 1));
}

#[test]
fn tensor_maps_are_encoded_and_passed() {
    let setup = setup();
    let tensor = TiledTensor {
        dtype: TmaType::F16,
        dims: vec![16, 8],
        strides: vec![32],
        boxes: vec![16, 8],
        swizzle: Swizzle::B32,
        once: false,
    };
    let map = TensorMap::tiled((&setup.buffer).into(), &tensor).unwrap();
    assert_eq!(map.as_bytes()[..4], [6, 2, 1, 2]);
    let aligned = TiledTensor {
        dims: vec![16, 2],
        strides: vec![128],
        boxes: vec![16, 2],
        ..tensor.clone()
    };
    let map_of_lines = TensorMap::tiled((&setup.buffer).into(), &aligned).unwrap();
    assert_eq!(map_of_lines.as_bytes()[3], 3);
    let once = TiledTensor {
        once: true,
        ..aligned
    };
    let map_of_once = TensorMap::tiled((&setup.buffer).into(), &once).unwrap();
    assert_eq!(map_of_once.as_bytes()[3], 0);
    let args = [(&setup.buffer).into(), Arg::I32(0), (&map).into()];
    setup.kernel.launch(&shape(), &setup.stream, &args).unwrap();
    let launched = with(|state| state.launches.pop()).unwrap();
    assert_eq!(launched.args[2], map.as_bytes());
    let small = TensorMap::tiled(setup.buffer.view(16).unwrap(), &tensor).unwrap_err();
    assert!(matches!(
        small,
        TensorMapError::TooSmall {
            needed: 256,
            got: 240
        }
    ));
    // What the driver cannot be told never reaches it.
    with(|state| state.fail = Some(("cuTensorMapEncodeTiled", 1)));
    let empty = TiledTensor {
        dims: vec![16, 0],
        ..tensor
    };
    let refused = TensorMap::tiled((&setup.buffer).into(), &empty).unwrap_err();
    assert_eq!(refused, TensorMapError::Dim { dim: 1, size: 0 });
    assert!(with(|state| state.fail.is_some()), "the driver was asked");
}

#[test]
fn streams_and_events_work_together() {
    let Setup { device, stream, .. } = setup();
    let (start, end) = (
        device.event().unwrap(),
        device.event_without_time().unwrap(),
    );
    stream.record(&start).unwrap();
    stream.record(&end).unwrap();
    device.default_stream().wait(&end).unwrap();
    end.synchronize().unwrap();
    assert_eq!(end.since(&start).unwrap(), Duration::from_micros(1500));
    assert!(stream.is_done().unwrap());
    with(|state| state.fail = Some(("cuStreamQuery", 600)));
    assert!(!stream.is_done().unwrap());
}

#[test]
fn a_launch_allocates_nothing_and_adds_little() {
    let setup = setup();
    let args = args(&setup.buffer);
    let launch = shape().shared(100_000);
    setup.kernel.launch(&launch, &setup.stream, &args).unwrap();
    with(|state| state.keep_launches = false);
    let mut best = Duration::MAX;
    let count = fake::allocations(|| {
        for _ in 0..50 {
            let start = Instant::now();
            for _ in 0..100 {
                setup.kernel.launch(&launch, &setup.stream, &args).unwrap();
            }
            best = best.min(start.elapsed() / 100);
        }
    });
    println!("a launch without the driver's own work: {best:?}");
    assert_eq!(count, 0);
    // The driver itself takes two to three microseconds; the goal for both is five.
    assert!(best < Duration::from_micros(2), "{best:?}");
}
