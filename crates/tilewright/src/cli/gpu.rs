//! Kernels on a GPU of this machine, for the commands that run them there.

use std::env;
use std::process::Command;
use std::time::Duration;

use tilewright::frontend::Facts;
use tilewright::ir::prints::Printed;
use tilewright::ir::{Code, Diagnostic, Func, SourceMap, Span, Target};
use tilewright::jit::gpu::{best_target, check_target, compiled_for, vendor};
use tilewright::jit::{self, Compiler, Error, Program};
use tilewright::runtime::cache::Cache;
use tilewright::runtime::device::{self, Device};
use tilewright::runtime::env::Env;
use tilewright::sim;

use super::KernelArgs;
use super::input::{self, Loaded};
use super::output::{self, Failure, Outcome};

/// The first GPU, and what kernels are lowered for on it.
#[derive(Debug)]
pub struct Gpu {
    pub device: Device,
    pub target: Target,
}

impl Gpu {
    /// Opens the first GPU of the target's vendor. Without a target it is the first GPU of the
    /// machine, and the best target that it has.
    pub fn open(target: Option<Target>) -> Result<Gpu, Error> {
        let device = match target.map(vendor) {
            Some(vendor) => device::open(vendor, 0)?,
            None => device::open_any()?,
        };
        let target = match target {
            Some(target) => target,
            None => best_target(device.info())?,
        };
        check_target(target, device.info())?;
        Ok(Gpu { device, target })
    }

    /// Opens the GPU as [`Gpu::open`] does and loads a kernel for it. What is wrong with the kernel is
    /// said even where there is no GPU.
    pub fn open_with(
        target: Option<Target>,
        kernel: &KernelArgs,
        as_json: bool,
    ) -> Result<(Gpu, Loaded), Failure> {
        let gpu = Gpu::open(target);
        let facts = match &gpu {
            Ok(gpu) => gpu.facts(target),
            Err(_) => target.unwrap_or(Target::DEFAULT).into(),
        };
        let loaded = input::load(kernel, facts, as_json)?;
        match gpu {
            Ok(gpu) => Ok((gpu, loaded)),
            Err(error) => Err(fail(error, &loaded.sources, as_json)),
        }
    }

    /// What a kernel is told of the machine: of a target that the user named that target's facts,
    /// else those of this very GPU.
    pub fn facts(&self, named: Option<Target>) -> Facts {
        let own = self.device.info().multiprocessors;
        Facts {
            target: self.target,
            multiprocessors: named.is_none().then_some(own),
        }
    }

    /// Compiles a function for the GPU: for what it was lowered for where the GPU runs that,
    /// else for the GPU itself.
    pub fn build(
        &self,
        func: &Func,
        options: &jit::Options,
        sources: &SourceMap,
    ) -> Result<Program, Error> {
        let env = Env::process();
        let compiler = Compiler::find(self.target, &env)?;
        self.build_with(func, options, sources, &compiler, &Cache::open(&env))
    }

    /// The same with a compiler and a cache of the caller's.
    pub fn build_with(
        &self,
        func: &Func,
        options: &jit::Options,
        sources: &SourceMap,
        compiler: &Compiler,
        cache: &Cache,
    ) -> Result<Program, Error> {
        let options = jit::Options {
            arch: compiled_for(self.target, self.device.info()),
            ..options.clone()
        };
        let sources = Some(sources);
        jit::build_with(func, self.target, &options, sources, compiler, cache)
    }

    /// Runs a function once on host tensors, and says how long its kernels took and what they left to
    /// be printed.
    pub fn run(
        &self,
        func: &Func,
        args: &mut sim::Args,
        options: &jit::Options,
        sources: &SourceMap,
    ) -> Result<(Duration, Printed), Error> {
        let loaded = self.build(func, options, sources)?.load(&self.device)?;
        let call = loaded.bind(args)?;
        let took = self.timed(&loaded, || loaded.launch(&call))?;
        loaded.fetch(&call, args)?;
        Ok((took, loaded.printed(&call, loaded.stream())?))
    }

    /// The time that the GPU takes for what `work` puts into the queue.
    pub fn timed(
        &self,
        loaded: &jit::Loaded,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Duration, Error> {
        let stream = loaded.stream();
        let (start, end) = (self.device.event()?, self.device.event()?);
        stream.record(&start)?;
        work()?;
        stream.record(&end)?;
        end.synchronize()?;
        Ok(end.since(&start)?)
    }
}

/// Runs this command again as a process of its own, which may touch the GPU. A kernel that
/// faults takes the process's device with it, and a driver that crashes the whole process; this
/// one is there to say so.
pub fn in_worker(as_json: bool) -> Outcome {
    let done = env::current_exe().and_then(|exe| {
        Command::new(exe)
            .args(env::args_os().skip(1))
            .arg("--worker")
            .status()
    });
    let why = match done {
        Ok(status) => match status.code() {
            Some(0) => return Ok(()),
            Some(code) => return Err(Failure::Worker(u8::try_from(code).unwrap_or(1))),
            None => format!("the process that ran the kernel on the GPU died: {status}"),
        },
        Err(e) => format!("no process could be started to run the kernel on the GPU: {e}"),
    };
    let diag = Diagnostic::error(Code("gpu-worker"), Span::NONE, why);
    Err(output::fail(&[diag], &SourceMap::new(), as_json))
}

/// Reports why a kernel did not run.
pub fn fail(error: Error, sources: &SourceMap, as_json: bool) -> Failure {
    output::fail(&error.into_diagnostics(), sources, as_json)
}
