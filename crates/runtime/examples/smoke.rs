//! The whole runtime on a real GPU: finds, compiles, caches, launches, verifies, measures, faults.
//!
//! Prints one table and exits with 1 if anything is wrong. Faults are provoked in processes of
//! their own, which this program starts as copies of itself.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use tilewright_runtime::cache::{Cache, DEFAULT_CAP, KeyBuilder, Outcome};
use tilewright_runtime::device::cuda::{self, Swizzle, TensorMap, TiledTensor, TmaType};
use tilewright_runtime::device::{
    Arg, Device, DeviceError, Kernel, KernelSpec, Launch, Model, Module, ParamKind, ParamSpec,
    ScalarType, Stream,
};
use tilewright_runtime::doctor;
use tilewright_runtime::env::Env;
use tilewright_runtime::toolchain::{CompileOptions, Cubin, Toolchain};

const SOURCE: &str = r#"
extern "C" __global__ void __launch_bounds__(256)
add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void empty() {}
extern "C" __global__ void big_shared(int* out, int words) {
  extern __shared__ int shared[];
  for (int i = threadIdx.x; i < words; i += blockDim.x) shared[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = shared[words - 1];
}
extern "C" __global__ void wild(int* out) { out[1ll << 40] = 1; }
extern "C" __global__ void trapped() { asm volatile("trap;"); }
"#;

/// What only sm_90 and later have.
const HOPPER: &str = r#"
struct alignas(64) TensorMap { unsigned long long words[16]; };
extern "C" __global__ void cluster_rank(int* out) {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) out[blockIdx.x] = rank;
}
extern "C" __global__ void tma_row(const __grid_constant__ TensorMap map, float* out) {
  __shared__ alignas(128) float tile[64];
  __shared__ alignas(8) unsigned long long barrier;
  unsigned b = (unsigned)__cvta_generic_to_shared(&barrier);
  unsigned t = (unsigned)__cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(b) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(t), "l"(&map), "r"(8), "r"(3), "r"(b) : "memory");
  }
  __syncthreads();
  asm volatile("{.reg .pred p; w: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra w;}"
               :: "r"(b) : "memory");
  out[threadIdx.x] = tile[threadIdx.x];
}
"#;

type Outcomes = Vec<(&'static str, Result<String, String>)>;

fn main() -> ExitCode {
    if let Some(fault) = std::env::args().nth(1) {
        return child(&fault);
    }
    for finding in doctor::report(&Env::process()) {
        println!("{finding}");
    }
    println!();
    let mut rows: Outcomes = Vec::new();
    if let Err(error) = run(&mut rows) {
        rows.push(("the rest", Err(error)));
    }
    let mut good = true;
    for (what, result) in rows {
        match result {
            Ok(text) => println!("ok    {what:<28} {text}"),
            Err(text) => {
                good = false;
                println!("FAIL  {what:<28} {text}");
            }
        }
    }
    match good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn run(rows: &mut Outcomes) -> Result<(), String> {
    let env = Env::process();
    let device = cuda::open(0).map_err(text);
    // What needs no GPU is measured without one too.
    let arch = match &device {
        Ok(device) => device.info().arch(),
        Err(_) => "sm_90a".to_owned(),
    };
    let start = Instant::now();
    let toolchain = Toolchain::find(&env).map_err(text)?;
    let identity = toolchain.identity().map_err(text)?;
    rows.push((
        "toolchain",
        Ok(format!("{identity}, found in {:?}", start.elapsed())),
    ));
    let start = Instant::now();
    let options = CompileOptions::default();
    let cubin = toolchain.compile(SOURCE, &arch, &options).map_err(text)?;
    rows.push((
        "compile 5 kernels, first",
        Ok(format!("{:?} with loading NVRTC", start.elapsed())),
    ));
    let start = Instant::now();
    toolchain.compile(SOURCE, &arch, &options).map_err(text)?;
    rows.push((
        "compile 5 kernels, again",
        Ok(format!("{:?}", start.elapsed())),
    ));
    let start = Instant::now();
    let small = "extern \"C\" __global__ void k(float* a) { a[threadIdx.x] += 1.0f; }";
    toolchain.compile(small, &arch, &options).map_err(text)?;
    rows.push((
        "compile a small kernel",
        Ok(format!("{:?}", start.elapsed())),
    ));
    rows.push(("cache", cached(&env, &arch)));

    let device = device?;
    let info = device.info().clone();
    rows.push((
        "device",
        Ok(format!(
            "{} {}, driver {:?}",
            info.name,
            info.arch(),
            info.driver
        )),
    ));
    let stream = device.stream().map_err(text)?;
    let start = Instant::now();
    let module = device.load(&cubin).map_err(text)?;
    rows.push(("load module", Ok(format!("{:?}", start.elapsed()))));
    let add = module.kernel("add", add_spec()).map_err(text)?;
    let kernel = cubin.kernel("add").ok_or("no kernel `add`")?;
    rows.push((
        "resources of `add`",
        Ok(format!(
            "{} registers, {} B shared, {} B stack, spills {:?}",
            kernel.registers, kernel.static_shared, kernel.stack, kernel.spills
        )),
    ));
    rows.push(("vector add, 1000003", vector_add(&device, &stream, &add)));
    let empty = module
        .kernel("empty", KernelSpec::default())
        .map_err(text)?;
    rows.push(("launch overhead, no args", overhead(&stream, &empty, &[])));
    let small = device.zeros(1024, &stream).map_err(text)?;
    let args = [
        (&small).into(),
        (&small).into(),
        (&small).into(),
        Arg::I32(256),
    ];
    rows.push(("launch overhead, 4 args", overhead(&stream, &add, &args)));
    rows.push(("event timing", timing(&device, &stream)));
    rows.push((
        "shared memory at the limit",
        big_shared(&device, &stream, &module),
    ));
    rows.push(("refused before the launch", refused(&device, &stream, &add)));
    if matches!(
        info.model,
        Model::Nvidia {
            capability: (9.., _)
        }
    ) {
        let hopper = toolchain
            .compile(HOPPER, &info.arch(), &options)
            .map_err(text)?;
        rows.push(("cluster launch", clusters(&device, &stream, &hopper)));
        rows.push(("tensor map and TMA", tma(&device, &stream, &hopper)));
    }
    for fault in ["wild", "trapped", "old-cubin"] {
        let name = match fault {
            "wild" => "fault: illegal address",
            "trapped" => "fault: trap",
            _ => "code for another GPU",
        };
        rows.push((name, in_child(fault)));
    }
    Ok(())
}

fn add_spec() -> KernelSpec {
    let pointer = |name| ParamSpec::new(name, ParamKind::pointer("float32"));
    KernelSpec {
        params: vec![
            pointer("a"),
            pointer("b"),
            pointer("c"),
            ParamSpec::new("n", ParamKind::Scalar(ScalarType::I32)),
        ],
        origin: Some("smoke.rs".to_owned()),
    }
}

fn one_pointer(origin: &str) -> KernelSpec {
    KernelSpec {
        params: vec![ParamSpec::new("out", ParamKind::pointer("int32"))],
        origin: Some(origin.to_owned()),
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let word = |chunk: &[u8]| f32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
    bytes.chunks_exact(4).map(word).collect()
}

fn ints(bytes: &[u8]) -> Vec<i32> {
    let word = |chunk: &[u8]| i32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
    bytes.chunks_exact(4).map(word).collect()
}

fn vector_add(device: &Device, stream: &Stream, add: &Kernel) -> Result<String, String> {
    let n = 1_000_003;
    let a: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
    let b: Vec<f32> = (0..n).map(|i| (i % 977) as f32).collect();
    let da = device.upload(&bytes(&a), stream).map_err(text)?;
    let db = device.upload(&bytes(&b), stream).map_err(text)?;
    let dc = device.alloc(4 * n).map_err(text)?;
    dc.fill(0xff, stream).map_err(text)?;
    let blocks = n.div_ceil(256) as u32;
    let args = [
        da.of("float32").into(),
        db.of("float32").into(),
        dc.of("float32").into(),
        Arg::I32(n as i32),
    ];
    let launch = Launch::new([blocks, 1, 1], [256, 1, 1]);
    add.launch(&launch, stream, &args).map_err(text)?;
    let c = floats(&dc.to_vec(stream).map_err(text)?);
    let wrong = (0..n).filter(|&i| c[i] != a[i] + b[i]).count();
    match wrong {
        0 => Ok("every element right".to_owned()),
        _ => Err(format!("{wrong} of {n} elements wrong")),
    }
}

fn cached(env: &Env, arch: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let look = || -> Result<(Duration, Outcome), String> {
        // New objects have nothing in memory, like a new process.
        let start = Instant::now();
        let toolchain = Toolchain::find(env).map_err(text)?;
        let cache = Cache::at(folder.path(), DEFAULT_CAP);
        let key = KeyBuilder::new()
            .part("source", SOURCE)
            .part("arch", arch)
            .part("toolchain", toolchain.identity().map_err(text)?)
            .finish();
        let build = || {
            let cubin = toolchain.compile(SOURCE, arch, &CompileOptions::default());
            cubin.map(|cubin| cubin.encode()).map_err(text)
        };
        let (encoded, outcome) = cache.get_or_build(&key, "smoke", build)?;
        Cubin::decode(&encoded).map_err(text)?;
        Ok((start.elapsed(), outcome))
    };
    let (cold, first) = look()?;
    let (hit, second) = look()?;
    match (&first, &second) {
        (Outcome::Built, Outcome::Hit) if hit < Duration::from_millis(5) => {
            Ok(format!("built in {cold:?}, hit in {hit:?}"))
        }
        _ => Err(format!("{first:?} in {cold:?}, {second:?} in {hit:?}")),
    }
}

/// The time of one call of `launch`, with the queue never full: the best of many short runs.
fn overhead(stream: &Stream, kernel: &Kernel, args: &[Arg<'_>]) -> Result<String, String> {
    let launch = Launch::new([1, 1, 1], [32, 1, 1]);
    let mut times = Vec::new();
    for _ in 0..200 {
        let start = Instant::now();
        for _ in 0..100 {
            kernel.launch(&launch, stream, args).map_err(text)?;
        }
        times.push(start.elapsed() / 100);
        stream.synchronize().map_err(text)?;
    }
    times.sort();
    let (best, median) = (times[0], times[times.len() / 2]);
    match median < Duration::from_micros(5) {
        true => Ok(format!("{median:?} median, {best:?} best")),
        false => Err(format!("{median:?} median, {best:?} best: over 5 µs")),
    }
}

fn timing(device: &Device, stream: &Stream) -> Result<String, String> {
    let bytes = 1 << 30;
    let from = device.zeros(bytes, stream).map_err(text)?;
    let to = device.alloc(bytes).map_err(text)?;
    let (start, end) = (device.event().map_err(text)?, device.event().map_err(text)?);
    to.copy_from(&from, stream).map_err(text)?;
    stream.record(&start).map_err(text)?;
    to.copy_from(&from, stream).map_err(text)?;
    stream.record(&end).map_err(text)?;
    end.synchronize().map_err(text)?;
    let time = end.since(&start).map_err(text)?;
    let rate = 2.0 * bytes as f64 / time.as_secs_f64() / 1e9;
    Ok(format!(
        "a copy of 1 GiB takes {time:?}, {rate:.0} GB/s read and written"
    ))
}

fn big_shared(device: &Device, stream: &Stream, module: &Module) -> Result<String, String> {
    let mut spec = one_pointer("smoke.rs");
    spec.params
        .push(ParamSpec::new("words", ParamKind::Scalar(ScalarType::I32)));
    let kernel = module.kernel("big_shared", spec).map_err(text)?;
    let out = device.zeros(16, stream).map_err(text)?;
    let limit = device.info().shared_per_block;
    let words = (limit / 4) as i32;
    let launch = Launch::new([1, 1, 1], [256, 1, 1]).shared(limit);
    let args = [(&out).into(), Arg::I32(words)];
    kernel.launch(&launch, stream, &args).map_err(text)?;
    let got = ints(&out.to_vec(stream).map_err(text)?)[0];
    let blocks = kernel.blocks_per_multiprocessor(256, limit).map_err(text)?;
    match (got == words - 1, blocks) {
        (true, 1) => Ok(format!("{limit} bytes, one block on a multiprocessor")),
        _ => Err(format!("read {got} of {words} words, {blocks} blocks")),
    }
}

fn refused(device: &Device, stream: &Stream, add: &Kernel) -> Result<String, String> {
    let buffer = device.zeros(64, stream).map_err(text)?;
    let odd = buffer.view(4).map_err(text)?;
    let good: Arg<'_> = (&buffer).into();
    let launch = Launch::new([1, 1, 1], [256, 1, 1]);
    let wide = Launch::new([1, 1, 1], [512, 1, 1]);
    let n = Arg::I32(1);
    let cases: [(&Launch, Vec<Arg<'_>>); 4] = [
        (&launch, vec![good, good, good]),
        (&launch, vec![odd.into(), good, good, n]),
        (&launch, vec![good, good, good, Arg::F32(1.0)]),
        (&wide, vec![good, good, good, n]),
    ];
    for (launch, args) in &cases {
        match add.launch(launch, stream, args) {
            Err(DeviceError::Launch(_)) => {}
            other => return Err(format!("{other:?}")),
        }
    }
    stream.synchronize().map_err(text)?;
    Ok("count, alignment, kind and block size".to_owned())
}

fn clusters(device: &Device, stream: &Stream, cubin: &Cubin) -> Result<String, String> {
    let module = device.load(cubin).map_err(text)?;
    let kernel = module
        .kernel("cluster_rank", one_pointer("smoke.rs"))
        .map_err(text)?;
    for size in [2u32, 8, 16] {
        let out = device.zeros(4 * 32, stream).map_err(text)?;
        let launch = Launch::new([32, 1, 1], [32, 1, 1]).cluster([size, 1, 1]);
        kernel
            .launch(&launch, stream, &[(&out).into()])
            .map_err(text)?;
        let ranks = ints(&out.to_vec(stream).map_err(text)?);
        let right = (0..32).all(|block| ranks[block as usize] == (block % size) as i32);
        if !right {
            return Err(format!("clusters of {size}: ranks {ranks:?}"));
        }
    }
    Ok("clusters of 2, 8 and 16 blocks".to_owned())
}

fn tma(device: &Device, stream: &Stream, cubin: &Cubin) -> Result<String, String> {
    let module = device.load(cubin).map_err(text)?;
    let spec = KernelSpec {
        params: vec![
            ParamSpec::new("map", ParamKind::Bytes { size: 128 }),
            ParamSpec::new("out", ParamKind::pointer("float32")),
        ],
        origin: Some("smoke.rs".to_owned()),
    };
    let kernel = module.kernel("tma_row", spec).map_err(text)?;
    let (rows, columns) = (16, 128);
    let data: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
    let source = device.upload(&bytes(&data), stream).map_err(text)?;
    let tensor = TiledTensor {
        dtype: TmaType::F32,
        dims: vec![columns, rows],
        strides: vec![columns * 4],
        boxes: vec![64, 1],
        swizzle: Swizzle::None,
        once: false,
    };
    let map = TensorMap::tiled((&source).into(), &tensor).map_err(text)?;
    let out = device.zeros(256, stream).map_err(text)?;
    let launch = Launch::new([1, 1, 1], [64, 1, 1]);
    kernel
        .launch(&launch, stream, &[(&map).into(), (&out).into()])
        .map_err(text)?;
    let got = floats(&out.to_vec(stream).map_err(text)?);
    let first = (3 * columns + 8) as usize;
    match got == data[first..first + 64] {
        true => Ok("a row of a 2D tensor arrived".to_owned()),
        false => Err(format!("got {:?}…", &got[..4])),
    }
}

/// Runs a copy of this program that provokes a fault, and shows what it said.
fn in_child(fault: &str) -> Result<String, String> {
    let exe = std::env::current_exe().map_err(text)?;
    let output = Command::new(exe).arg(fault).output().map_err(text)?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.success() {
        true => Ok(said),
        false => Err(format!(
            "{said} {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

fn child(fault: &str) -> ExitCode {
    match provoke(fault) {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(said) => {
            println!("{said}");
            ExitCode::FAILURE
        }
    }
}

/// Faults, then goes on in the same process: the device is opened again and must work.
fn provoke(fault: &str) -> Result<String, String> {
    let device = cuda::open(0).map_err(text)?;
    let toolchain = Toolchain::find(&Env::process()).map_err(text)?;
    let options = CompileOptions::default();
    if fault == "old-cubin" {
        // Turing's code runs on no GPU that has tensor maps.
        let old = toolchain.compile(SOURCE, "sm_75", &options).map_err(text)?;
        return match device.load(&old) {
            Err(error @ DeviceError::WrongArch { .. }) => Ok(error.to_string()),
            other => Err(format!("{other:?}")),
        };
    }
    let arch = device.info().arch();
    let cubin = toolchain.compile(SOURCE, &arch, &options).map_err(text)?;
    let stream = device.stream().map_err(text)?;
    let module = device.load(&cubin).map_err(text)?;
    let buffer = device.zeros(1024, &stream).map_err(text)?;
    let launch = Launch::new([1, 1, 1], [32, 1, 1]);
    match fault {
        "wild" => {
            let kernel = module
                .kernel("wild", one_pointer("smoke.rs"))
                .map_err(text)?;
            kernel
                .launch(&launch, &stream, &[(&buffer).into()])
                .map_err(text)?;
        }
        _ => {
            let kernel = module
                .kernel("trapped", KernelSpec::default())
                .map_err(text)?;
            kernel.launch(&launch, &stream, &[]).map_err(text)?;
        }
    }
    let error = match stream.synchronize() {
        Err(error @ DeviceError::Fault(_)) => error.to_string(),
        other => return Err(format!("the fault was not reported: {other:?}")),
    };
    if !matches!(buffer.to_vec(&stream), Err(DeviceError::Lost(_))) {
        return Err("the lost buffer could be read".to_owned());
    }
    let device = cuda::open(0).map_err(|e| format!("{error}; then {e}"))?;
    let stream = device.stream().map_err(text)?;
    let module = device.load(&cubin).map_err(text)?;
    let add = module.kernel("add", add_spec()).map_err(text)?;
    drop(buffer);
    let after = vector_add(&device, &stream, &add)?;
    Ok(format!("{error}; opened again: {after}"))
}
