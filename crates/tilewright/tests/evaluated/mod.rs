//! Kernels in text form: lowered for every target, against the reference evaluator.

use tilewright::ir::{DType, Func, SourceMap, Target, text, verify};
use tilewright::passes::driver::{self, Options};
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{self, Arg, Args, HostTensor, RunOptions};

/// Small integers of both signs.
pub fn ramp(dtype: DType, shape: &[i64]) -> HostTensor {
    let count: i64 = shape.iter().product();
    let values: Vec<f64> = (0..count).map(|n| ((n * 37) % 101 - 50) as f64).collect();
    let shape: Vec<usize> = shape.iter().map(|&e| e as usize).collect();
    HostTensor::from_f64(dtype, &shape, &values).expect("as many values as elements")
}

fn parse(source: &str) -> Result<Func, String> {
    let mut sources = SourceMap::new();
    let file = sources.add("kernel.tw", source);
    let func = text::parse(source, file).map_err(|e| format!("{e:?}"))?;
    verify::verify(&func).map_err(|e| format!("{e:?}"))?;
    Ok(func)
}

fn lower(func: &Func, target: Target) -> Result<Func, String> {
    let mut func = func.clone();
    driver::run(&mut func, target, &Options::default())
        .map_err(|failed| format!("{:?}: {:?}", failed.cause, failed.errors))?;
    Ok(func)
}

/// Runs a kernel in text form on the evaluator and, lowered, on every target whose warps have no
/// more threads than `least`, and compares the outputs exactly.
pub fn check(
    source: &str,
    inputs: &[(&str, HostTensor)],
    outputs: &[&str],
    least: i64,
) -> Result<(), String> {
    let fits = |t: &Target| least >= i64::from(t.machine().warp_size);
    let targets: Vec<Target> = Target::ALL.into_iter().filter(fits).collect();
    check_on(&targets, source, inputs, outputs).map(|_| ())
}

/// The same on some targets. Returns what the kernel was lowered to for each.
pub fn check_on(
    targets: &[Target],
    source: &str,
    inputs: &[(&str, HostTensor)],
    outputs: &[&str],
) -> Result<Vec<Func>, String> {
    let func = parse(source)?;
    let args = || {
        let mut args = Args::new();
        for (name, tensor) in inputs {
            args.insert(*name, Arg::Tensor(tensor.clone()));
        }
        args
    };
    let read = |args: &Args, name: &str| args.tensor(name).expect("an output").to_f64();
    let mut expected = args();
    sim::run(&func, &mut expected, &RunOptions::default()).map_err(|e| format!("{e:?}"))?;
    let mut made = Vec::new();
    for &target in targets {
        let lowered = lower(&func, target).map_err(|e| format!("{target}: {e}"))?;
        let mut found = args();
        let report = simt::run(&lowered, target, &mut found, &SimtOptions::default());
        let report = report.map_err(|e| format!("{target}: {e:?}"))?;
        if !report.is_clean() {
            return Err(format!("{target}: {:?}\n{lowered}", report.diagnostics()));
        }
        for name in outputs {
            let (a, b) = (read(&expected, name), read(&found, name));
            if let Some(at) = (0..a.len()).find(|&at| a[at] != b[at]) {
                let (a, b) = (a[at], b[at]);
                return Err(format!(
                    "{target}: {name}[{at}] is {b} instead of {a}\n{lowered}"
                ));
            }
        }
        made.push(lowered);
    }
    Ok(made)
}
