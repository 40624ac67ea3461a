//! The laboratory that is a GPU: all configurations work on the same memory, each run with a cold
//! L2 cache.
//!
//! A kernel that faults takes everything on the device with it. Then the device is opened again, and
//! the others are loaded anew: one broken configuration does not end the session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilewright_ir::Func;
use tilewright_ir::touched::written;
use tilewright_ir::visit::walk_stmts;
use tilewright_runtime::cache::Cache;
use tilewright_runtime::device::{self, Buffer, Device, Stream};
use tilewright_runtime::env::Env;
use tilewright_sim::{self as sim, Arg, Args, HostTensor, RunOptions};
use tilewright_tune::{Lab, Unit};

use super::{CHECKED_BLOCKS, Shared, Subject, said, said_of};
use crate::jit::gpu::{compiled_for, vendor};
use crate::jit::{self, Call, Compiler, Error, Flush, Loaded, Program, time_each};
use crate::verdict::{Compared, summation, verdict_within};

/// What outputs hold before a kernel writes them: no float type takes it for zero or for much.
const UNWRITTEN: u8 = 0x3c;

pub(super) struct Gpu<'a> {
    shared: Shared<'a>,
    compiler: &'a Compiler,
    cache: Cache,
    bench: Mutex<Bench>,
}

/// What is on the device at the moment.
struct Bench {
    device: Device,
    /// Counts the times that the device was lost.
    life: u32,
    set: Option<Set>,
}

struct Set {
    stream: Stream,
    flush: Flush,
    memory: Vec<(String, Buffer)>,
    /// The inputs, on the host.
    given: Args,
}

pub(super) struct Built {
    at: usize,
    program: Program,
    loaded: Mutex<Option<OnDevice>>,
}

/// The program in one life of the device.
type OnDevice = (u32, Arc<(Loaded, Call)>);

/// The tensors that a configuration wrote.
pub(super) struct Answer {
    at: usize,
    tensors: Args,
}

impl<'a> Gpu<'a> {
    pub fn new(shared: Shared<'a>, device: Device, compiler: &'a Compiler) -> Gpu<'a> {
        Gpu {
            shared,
            compiler,
            cache: Cache::open(&Env::process()),
            bench: Mutex::new(Bench {
                device,
                life: 0,
                set: None,
            }),
        }
    }

    /// The bench with everything on it.
    fn ready(&self, subject: &Subject) -> Result<MutexGuard<'_, Bench>, String> {
        let mut bench = self.bench.lock().unwrap_or_else(PoisonError::into_inner);
        let fail = |e: Error| said_of(e, subject);
        if bench.device.is_lost() {
            bench.set = None;
            let again = device::open(vendor(self.shared.target), bench.device.ordinal());
            bench.device = again.map_err(|e| fail(e.into()))?;
            bench.life += 1;
        }
        if bench.set.is_none() {
            let given = self.shared.inputs(subject)?;
            bench.set = Some(Set::new(&bench.device, self.compiler, given).map_err(fail)?);
        }
        Ok(bench)
    }

    fn loaded(&self, bench: &Bench, built: &Built) -> Result<Arc<(Loaded, Call)>, Error> {
        let mut kept = built.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((life, loaded)) = &*kept
            && *life == bench.life
        {
            return Ok(loaded.clone());
        }
        let loaded = built.program.load(&bench.device)?;
        let Some(set) = &bench.set else {
            return Err(Error::plain("tune", tilewright_ir::Span::NONE, "no inputs"));
        };
        let call =
            loaded.bind_memory(&mut described(&set.given), set.memory.clone(), Vec::new())?;
        let both = Arc::new((loaded, call));
        *kept = Some((bench.life, both.clone()));
        Ok(both)
    }
}

impl Set {
    fn new(device: &Device, compiler: &Compiler, given: Args) -> Result<Set, Error> {
        let stream = device.stream()?;
        let flush = Flush::new(device, compiler, &stream)?;
        let mut memory = Vec::new();
        for (name, arg) in given.iter() {
            if let Arg::Tensor(tensor) = arg {
                let buffer = device.alloc(tensor.bytes().len().max(16))?;
                buffer.write(0, tensor.bytes(), &stream)?;
                memory.push((name.to_owned(), buffer));
            }
        }
        Ok(Set {
            stream,
            flush,
            memory,
            given,
        })
    }

    /// Undoes what a kernel may have written.
    fn reset(&self, func: &Func) -> Result<(), Error> {
        for (name, output) in written_tensors(func) {
            let memory = self.memory.iter().find(|(known, _)| *known == name);
            let Some((_, buffer)) = memory else { continue };
            match (output, self.given.tensor(&name)) {
                (false, Some(tensor)) => buffer.write(0, tensor.bytes(), &self.stream)?,
                _ => buffer.fill(UNWRITTEN, &self.stream)?,
            }
        }
        Ok(())
    }
}

/// Whether a tensor is whole and has the bytes of another.
fn is_same(arg: &Arg, other: Option<&HostTensor>) -> bool {
    let (Arg::Tensor(one), Some(other)) = (arg, other) else {
        return false;
    };
    one.is_whole() && other.is_whole() && one.bytes() == other.bytes()
}

/// Arguments without their tensors' bytes.
fn described(given: &Args) -> Args {
    let mut args = Args::new();
    for (name, arg) in given.iter() {
        let arg = match arg {
            Arg::Tensor(t) => Arg::Tensor(HostTensor::described(t.dtype(), t.shape(), t.strides())),
            Arg::Int(v) => Arg::Int(*v),
            Arg::Float(v) => Arg::Float(*v),
        };
        args.insert(name, arg);
    }
    args.symbols = given.symbols.clone();
    args
}

/// Tensors that the function may write, and whether they are outputs, which nobody fills before.
fn written_tensors(func: &Func) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for kernel in &func.kernels {
        walk_stmts(&kernel.body, &mut |stmt| {
            written(stmt, &mut |buffer| found.push(buffer));
        });
    }
    let tensors = func.tensors();
    let those = tensors.filter(|(buffer, output)| *output || found.contains(buffer));
    those
        .map(|(buffer, output)| (func.buffers[buffer].name.clone(), output))
        .collect()
}

impl Lab for Gpu<'_> {
    type Built = Built;
    type Answer = Answer;

    fn compile(&self, at: usize) -> Result<Built, String> {
        let subject = self.shared.subject(at)?;
        let target = self.shared.target;
        let arch = {
            let bench = self.bench.lock().unwrap_or_else(PoisonError::into_inner);
            compiled_for(target, bench.device.info())
        };
        let options = jit::Options {
            arch,
            fast_math: subject.fast_math,
            ..jit::Options::default()
        };
        let sources = Some(&subject.sources);
        let (compiler, cache) = (self.compiler, &self.cache);
        let program = jit::build_with(&subject.func, target, &options, sources, compiler, cache);
        Ok(Built {
            at,
            program: program.map_err(|e| said_of(e, subject))?,
            loaded: Mutex::new(None),
        })
    }

    fn answer(&self, at: usize, built: &Built) -> Result<Option<Answer>, String> {
        let subject = self.shared.subject(at)?;
        let fail = |e: Error| said_of(e, subject);
        let bench = self.ready(subject)?;
        let loaded = self.loaded(&bench, built).map_err(fail)?;
        let Some(set) = &bench.set else {
            return Err("no inputs".to_owned());
        };
        let (loaded, call) = &*loaded;
        let mut tensors = Args::new();
        for (name, _) in written_tensors(&subject.func) {
            if let Some(tensor) = set.given.tensor(&name) {
                tensors.insert(name, Arg::Tensor(tensor.clone()));
            }
        }
        let mut run = || {
            set.reset(&subject.func)?;
            set.stream.synchronize()?;
            loaded.launch(call)?;
            loaded.fetch(call, &mut tensors)
        };
        run().map_err(fail)?;
        drop(bench);
        match self.shared.judge {
            Some(judge) => judge(at).map(|()| None),
            None => Ok(Some(Answer { at, tensors })),
        }
    }

    fn agree(&self, answer: &Answer, other: &Answer) -> Result<(), String> {
        let subject = self.shared.subject(answer.at)?;
        let (a, b) = (&answer.tensors, &other.tensors);
        // Most are the same to the last bit, which is seen at once.
        if a.iter().all(|(name, arg)| is_same(arg, b.tensor(name))) {
            return Ok(());
        }
        let sums = summation(&subject.func, self.shared.target);
        let judged = verdict_within(&subject.func, a, b, Compared::All, sums);
        match judged.wrong.first() {
            None => Ok(()),
            Some(wrong) => Err(format!("{} elements of `{}`", wrong.elements, wrong.tensor)),
        }
    }

    fn verify(&self, at: usize, answer: &Answer) -> Result<(), String> {
        let subject = self.shared.subject(at)?;
        let fail = |e: sim::RunError| said(e.diagnostics.iter(), &subject.sources);
        let mut expected = self.shared.inputs(subject)?;
        let options = RunOptions {
            sample: Some(CHECKED_BLOCKS),
            warp_size: self.shared.target.machine().warp_size,
            ..RunOptions::default()
        };
        let report = sim::run(&subject.func, &mut expected, &options).map_err(fail)?;
        if report.races.has_errors() {
            return Err(said(report.races.iter(), &subject.sources));
        }
        let whole = report.kernels.iter().all(|k| k.ran == k.blocks);
        let which = match whole {
            true => Compared::Expected,
            false => Compared::Sample,
        };
        let sums = summation(&subject.func, self.shared.target);
        let judged = verdict_within(&subject.func, &answer.tensors, &expected, which, sums);
        match judged.diagnostic(&subject.func) {
            None => Ok(()),
            Some(wrong) => Err(said([&wrong], &subject.sources)),
        }
    }

    fn knows_what_is_right(&self) -> bool {
        self.shared.judge.is_some()
    }

    fn round(&self, built: &[&Built]) -> Vec<Result<f64, String>> {
        let Some(first) = built.first() else {
            return Vec::new();
        };
        let timed = self.shared.subject(first.at).and_then(|subject| {
            let bench = self.ready(subject)?;
            let Some(set) = &bench.set else {
                return Err("no inputs".to_owned());
            };
            let loaded: Vec<_> = built.iter().map(|b| self.loaded(&bench, b)).collect();
            let calls: Vec<_> = loaded.iter().flatten().map(|l| (&l.0, &l.1)).collect();
            let times = time_each(&bench.device, &set.stream, &set.flush, &calls)
                .map_err(|e| said_of(e, subject))?;
            let mut times = times.into_iter();
            let mut all = Vec::new();
            for loaded in loaded {
                let time = loaded.and_then(|_| match times.next() {
                    Some(time) => time,
                    None => Err(Error::plain("tune", tilewright_ir::Span::NONE, "no time")),
                });
                let time = time.map(|t| t.as_secs_f64().max(1e-9));
                all.push(time.map_err(|e| said_of(e, subject)));
            }
            Ok(all)
        });
        timed.unwrap_or_else(|why| vec![Err(why); built.len()])
    }

    fn unit(&self) -> Unit {
        Unit::Seconds
    }
}
