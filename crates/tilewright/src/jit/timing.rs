//! How long a call takes on its GPU.
//!
//! At the default pace each run starts with nothing of use in the L2 cache: a kernel reads more memory
//! than the cache holds, which also leaves no dirty lines for the next kernel to pay for. All runs are
//! queued without the host waiting in between, and while the GPU reads that memory the host queues the
//! next launch, so launch latency is not part of the time.
//!
//! Where power limits the clock, how long the GPU has worked decides as well: [`Pace`] has it idle
//! between runs, or never.

use std::time::{Duration, Instant};

use tilewright_runtime::device::{
    Arg, Buffer, Device, Event, Kernel, KernelSpec, Launch, ParamKind, ParamSpec, ScalarType,
    Stream,
};

use super::compiler::{Compiler, Wishes};
use super::error::Error;
use super::launch::{Call, Loaded};

/// Runs that are timed, and runs before them that are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    pub warmup: u32,
    pub timed: u32,
    pub pace: Pace,
}

/// What the GPU does between two runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Its L2 cache is emptied.
    #[default]
    Cold,
    /// It is idle for nine times as long as a run takes, after one that is not timed: the clock is high.
    Cool,
    /// Nothing: it runs back to back for a fifth of a second, of which the first two fifths do not count.
    Sustained,
}

impl Default for Runs {
    fn default() -> Runs {
        Runs {
            warmup: 10,
            timed: 50,
            pace: Pace::Cold,
        }
    }
}

/// Empties the L2 cache of what kernels left there.
#[derive(Debug)]
pub struct Flush {
    kernel: Kernel,
    memory: Buffer,
    launch: Launch,
}

/// What the source below takes from its vendor: CUDA has it built in.
const CUDA_WORDS: &str = r#"
typedef uint4 vector;
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)
#define THREADS ((unsigned long long)gridDim.x * blockDim.x)
"#;

const HIP_WORDS: &str = r#"
#define __global__ __attribute__((global))
struct alignas(16) vector { unsigned x, y, z, w; };
#define THREAD \
  (__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + \
   __builtin_amdgcn_workitem_id_x())
#define THREADS ((unsigned long long)__builtin_amdgcn_grid_size_x())
"#;

const FLUSH: &str = r#"
extern "C" __global__ void flush(const vector* memory, unsigned long long vectors, unsigned* sink) {
  unsigned sum = 0;
  for (unsigned long long i = THREAD; i < vectors; i += THREADS) {
    vector v = memory[i];
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum == 1) *sink = sum;  // Never, as the memory is zero; but the compiler cannot know.
}
"#;

/// A cache that the driver does not speak of is taken to be so large.
const LARGE_L2: usize = 128 << 20;

impl Flush {
    pub fn new(device: &Device, compiler: &Compiler, stream: &Stream) -> Result<Flush, Error> {
        let info = device.info();
        let words = match compiler {
            Compiler::Cuda(_) => CUDA_WORDS,
            Compiler::Hip(_) => HIP_WORDS,
        };
        let wishes = Wishes {
            name: "flush".to_owned(),
            ..Wishes::default()
        };
        let code = compiler
            .compile(&format!("{words}{FLUSH}"), &info.arch(), wishes)
            .map_err(Error::Toolchain)?;
        let pointer = |name| {
            let kind = ParamKind::Pointer {
                dtype: None,
                align: 16,
                min_bytes: 16,
            };
            ParamSpec::new(name, kind)
        };
        let spec = KernelSpec {
            params: vec![
                pointer("memory"),
                ParamSpec::new("vectors", ParamKind::Scalar(ScalarType::U64)),
                pointer("sink"),
            ],
            origin: None,
        };
        let kernel = device.load(&code)?.kernel("flush", spec)?;
        let bytes = match info.l2_bytes {
            0 => LARGE_L2,
            bytes => 2 * bytes as usize,
        };
        let memory = device.zeros(bytes.next_multiple_of(16), stream)?;
        let blocks = info.multiprocessors.max(1) * 4;
        Ok(Flush {
            kernel,
            memory,
            launch: Launch::new([blocks, 1, 1], [512, 1, 1]),
        })
    }

    fn queue(&self, stream: &Stream) -> Result<(), Error> {
        let vectors = self.memory.bytes() as u64 / 16;
        let memory = Arg::from(&self.memory);
        self.kernel
            .launch(&self.launch, stream, &[memory, Arg::U64(vectors), memory])?;
        Ok(())
    }
}

impl Loaded {
    /// The time of each run, in the order they were done.
    pub fn time(&self, call: &Call, flush: &Flush, runs: Runs) -> Result<Vec<Duration>, Error> {
        timed(&self.device, &self.stream, flush, runs, || {
            self.launch(call)
        })
    }

    /// What a launch costs the host: the median time to queue all kernels of the function. The
    /// queue is kept short, since a full one makes the host wait for the GPU.
    pub fn launch_cost(&self, call: &Call, runs: u32) -> Result<Duration, Error> {
        let mut costs = Vec::new();
        for _ in 0..runs.max(1) {
            let at = Instant::now();
            self.launch(call)?;
            costs.push(at.elapsed());
            self.stream.synchronize()?;
        }
        Ok(median(&costs))
    }
}

/// The time of one run of each call, each with a cold L2 cache, in this order. What one's time
/// could not be taken for is its own error.
pub fn time_each(
    device: &Device,
    stream: &Stream,
    flush: &Flush,
    calls: &[(&Loaded, &Call)],
) -> Result<Vec<Result<Duration, Error>>, Error> {
    let mut queued = Vec::new();
    for (loaded, call) in calls {
        let (start, end) = (device.event()?, device.event()?);
        flush.queue(stream)?;
        stream.record(&start)?;
        let launched = loaded.launch_on(call, stream);
        stream.record(&end)?;
        queued.push(launched.map(|()| (start, end)));
    }
    stream.synchronize()?;
    let time = |marks: Result<(Event, Event), Error>| {
        let (start, end) = marks?;
        Ok(end.since(&start)?)
    };
    Ok(queued.into_iter().map(time).collect())
}

/// The rate in bytes a second, read and written, at which the device copies its own memory:
/// what no kernel that moves as much can beat.
pub fn copy_rate(
    device: &Device,
    stream: &Stream,
    flush: &Flush,
    bytes: usize,
    runs: Runs,
) -> Result<f64, Error> {
    let (from, to) = (device.zeros(bytes, stream)?, device.alloc(bytes)?);
    let times = timed(device, stream, flush, runs, || {
        Ok(to.copy_from(&from, stream)?)
    })?;
    Ok(2.0 * bytes as f64 / median(&times).as_secs_f64())
}

fn timed(
    device: &Device,
    stream: &Stream,
    flush: &Flush,
    runs: Runs,
    mut work: impl FnMut() -> Result<(), Error>,
) -> Result<Vec<Duration>, Error> {
    match runs.pace {
        Pace::Cold => {}
        Pace::Cool => return cool(device, stream, runs, work),
        Pace::Sustained => return sustained(device, stream, work),
    }
    for _ in 0..runs.warmup {
        flush.queue(stream)?;
        work()?;
    }
    let mut events = Vec::new();
    for _ in 0..runs.timed.max(1) {
        events.push((device.event()?, device.event()?));
    }
    for (start, end) in &events {
        flush.queue(stream)?;
        stream.record(start)?;
        work()?;
        stream.record(end)?;
    }
    stream.synchronize()?;
    let mut times = Vec::new();
    for (start, end) in &events {
        times.push(end.since(start)?);
    }
    Ok(times)
}

fn cool(
    device: &Device,
    stream: &Stream,
    runs: Runs,
    mut work: impl FnMut() -> Result<(), Error>,
) -> Result<Vec<Duration>, Error> {
    const IDLE: u32 = 9;
    let (start, end) = (device.event()?, device.event()?);
    let mut times = Vec::new();
    for _ in 0..runs.timed.max(1) {
        work()?;
        stream.record(&start)?;
        work()?;
        stream.record(&end)?;
        stream.synchronize()?;
        let time = end.since(&start)?;
        std::thread::sleep(IDLE * time);
        times.push(time);
    }
    Ok(times)
}

fn sustained(
    device: &Device,
    stream: &Stream,
    mut work: impl FnMut() -> Result<(), Error>,
) -> Result<Vec<Duration>, Error> {
    const WHOLE: Duration = Duration::from_millis(200);
    /// Runs are timed together, this often at most.
    const PARTS: usize = 100;
    let first = Instant::now();
    for _ in 0..3 {
        work()?;
        stream.synchronize()?;
    }
    let each = (first.elapsed() / 3).max(Duration::from_micros(1));
    let count = (WHOLE.as_nanos() / each.as_nanos()).max(5) as usize;
    let parts = count.min(PARTS);
    let together = count.div_ceil(parts);
    let mut events = vec![device.event()?];
    stream.record(&events[0])?;
    for _ in 0..parts {
        for _ in 0..together {
            work()?;
        }
        let event = device.event()?;
        stream.record(&event)?;
        events.push(event);
    }
    stream.synchronize()?;
    let mut times = Vec::new();
    for pair in events.windows(2).skip(parts * 2 / 5) {
        times.push(pair[1].since(&pair[0])? / together as u32);
    }
    Ok(times)
}

/// The middle one; of an even number the earlier of the two.
pub fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len().saturating_sub(1) / 2;
    sorted.get(middle).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_one_of_the_times() {
        let ms = Duration::from_millis;
        assert_eq!(median(&[ms(9), ms(1), ms(5)]), ms(5));
        assert_eq!(median(&[ms(9), ms(1)]), ms(1));
        assert_eq!(median(&[]), Duration::ZERO);
    }
}
