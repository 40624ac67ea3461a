//! Shared by the evaluator's tests: kernels are written in the text form.

use tilewright_ir::{DType, Func, SourceMap, text};
use tilewright_sim::{Arg, Args, HostTensor, RunError, RunOptions, RunReport, run};

/// The function of a text; the test fails with the parser's message otherwise.
pub fn parse(source: &str) -> Func {
    let mut sources = SourceMap::new();
    let file = sources.add("test.tw", source);
    match text::parse(source, file) {
        Ok(func) => func,
        Err(list) => {
            let all: Vec<String> = list.iter().map(|d| d.render(&sources, false)).collect();
            panic!("{}", all.join("\n"));
        }
    }
}

pub fn dtype(name: &str) -> DType {
    DType::from_name(name).expect("a dtype's name")
}

/// A tensor of these values, rounded to the type.
pub fn tensor(dtype_name: &str, shape: &[usize], values: &[f64]) -> HostTensor {
    HostTensor::from_f64(dtype(dtype_name), shape, values).expect("as many values as elements")
}

pub fn zeros(dtype_name: &str, shape: &[usize]) -> HostTensor {
    HostTensor::zeros(dtype(dtype_name), shape).expect("a small tensor")
}

/// `0, 1, 2, …`
pub fn iota(dtype_name: &str, shape: &[usize]) -> HostTensor {
    let n = shape.iter().product();
    let values: Vec<f64> = (0..n).map(|i: usize| i as f64).collect();
    tensor(dtype_name, shape, &values)
}

pub fn call(source: &str, list: Vec<(&str, HostTensor)>) -> Result<(Args, RunReport), RunError> {
    call_with(source, list, &RunOptions::default())
}

pub fn call_with(
    source: &str,
    list: Vec<(&str, HostTensor)>,
    options: &RunOptions<'_>,
) -> Result<(Args, RunReport), RunError> {
    let func = parse(source);
    let mut args = Args::new();
    for (name, tensor) in list {
        args.insert(name, Arg::Tensor(tensor));
    }
    let report = run(&func, &mut args, options)?;
    Ok((args, report))
}

/// The elements of one output after a call that must succeed.
pub fn output(source: &str, list: Vec<(&str, HostTensor)>, name: &str) -> Vec<f64> {
    match call(source, list) {
        Ok((args, _)) => {
            let tensor = args.tensor(name).expect("an output");
            assert_eq!(tensor.count_unwritten(), 0, "all of `{name}` is written");
            tensor.to_f64()
        }
        Err(e) => panic!("{e}"),
    }
}

/// The error of a call that must fail with this code, with its source lines.
pub fn failure(source: &str, list: Vec<(&str, HostTensor)>, code: &str) -> String {
    match call(source, list) {
        Ok(_) => panic!("expected {code}"),
        Err(e) => {
            let mut sources = SourceMap::new();
            sources.add("test.tw", source);
            let text = e.diagnostics.render(&sources, false);
            assert_eq!(e.code().map(|c| c.0), Some(code), "{text}");
            text
        }
    }
}

/// A kernel of one block over a body; `params` are the lines before it.
pub fn kernel(params: &str, threads: u32, body: &str) -> String {
    format!(
        "func @k level=tile {{\n{params}\nkernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{\n{body}\n}}\n}}\n"
    )
}
