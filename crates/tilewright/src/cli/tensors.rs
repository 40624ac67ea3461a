//! Tensors that `run` takes from files, compares with files and writes to files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tilewright::ir::visit::{stmt_exprs, walk_stmts};
use tilewright::ir::{Buffer, Code, Diagnostic, ExprKind, Func, touched};
use tilewright::npy::{self, Array, Problem};
use tilewright::sim::{self, Arg, HostTensor, Number, Tolerance, compare_where};
use tilewright::verdict;

use super::output;

const TENSOR_FILE: Code = Code("tensor-file");
const NOT_AS_EXPECTED: Code = Code("not-as-expected");

#[derive(Args, Debug)]
#[command(next_help_heading = "Tensors")]
pub struct TensorArgs {
    /// Take a tensor from a file instead of random numbers: `A=a.npy`, `A=all.npz` for the array
    /// `A` of an archive, or `all.npz` for all of its arrays. May be repeated. Files have the
    /// parameter's type; for types that NumPy lacks (bfloat16, fp8, …) float32, which is rounded,
    /// or the bits as uint16, uint8 or raw elements; for int4 int8.
    #[arg(long = "in", value_name = "[NAME=]FILE")]
    inputs: Vec<String>,
    /// Write the tensors that the kernel wrote: as `NAME.npy` to this folder, or to one archive
    /// where the name ends in `.npz`. Types that NumPy lacks are written as float32, int4 as int8.
    #[arg(long = "out", value_name = "DIR|FILE.npz")]
    out: Option<PathBuf>,
    /// Compare a tensor, once the kernel has run, with a file: `C=c.npy`, `C=all.npz`, or
    /// `all.npz`. A difference is an error. May be repeated.
    #[arg(long, value_name = "[NAME=]FILE")]
    expect: Vec<String>,
    /// How far an element may be from what is expected: |a - b| <= atol + rtol |b|. Without either
    /// it follows from the types that the kernel rounds to; integers must be equal.
    #[arg(long, value_name = "X", requires = "expect")]
    atol: Option<f64>,
    /// The part of that which is relative to the expected value.
    #[arg(long, value_name = "X", requires = "expect")]
    rtol: Option<f64>,
}

/// What the files gave, and for which tensors.
#[derive(Debug, Default)]
pub struct Files {
    given: Vec<FromFile>,
    expected: Vec<FromFile>,
}

#[derive(Debug)]
struct FromFile {
    buffer: Buffer,
    path: String,
    array: Array,
}

/// Reads the files that the options name.
pub fn read(args: &TensorArgs, func: &Func) -> Result<Files, Box<Diagnostic>> {
    let all = |list: &[String]| -> Result<Vec<FromFile>, Box<Diagnostic>> {
        let mut found = Vec::new();
        for item in list {
            let arrays = arrays(item, func)?;
            found.extend(arrays);
        }
        Ok(found)
    };
    Ok(Files {
        given: all(&args.inputs)?,
        expected: all(&args.expect)?,
    })
}

/// The arrays of `A=a.npy`, `A=all.npz` or `all.npz`.
fn arrays(item: &str, func: &Func) -> Result<Vec<FromFile>, Box<Diagnostic>> {
    let (name, path) = match item.split_once('=') {
        Some((name, path)) => (Some(name.trim()), path),
        None => (None, item),
    };
    let refuse = |text: String| Box::new(Diagnostic::error(TENSOR_FILE, func.span, text));
    let bytes = fs::read(path).map_err(|e| refuse(format!("cannot read {path}: {e}")))?;
    let bad = |e: Problem| refuse(format!("{path}: {e}"));
    let found = if path.ends_with(".npz") {
        let mut all = npy::read_archive(&bytes).map_err(bad)?;
        if let Some(name) = name {
            all.retain(|(n, _)| n == name);
            if all.is_empty() {
                return Err(refuse(format!("{path} has no array `{name}`")));
            }
        }
        all
    } else {
        let array = Array::parse(&bytes).map_err(bad)?;
        let Some(name) = name else {
            let text = format!("`{item}` does not say which tensor it is for");
            return Err(Box::new(refuse(text).help(format!("write `NAME={path}`"))));
        };
        vec![(name.to_string(), array)]
    };
    let named = found.into_iter().map(|(name, array)| {
        let is = |b: &Buffer| func.buffers[*b].name == name;
        let buffer = func.tensors().map(|(b, _)| b).find(is).ok_or_else(|| {
            let all = func.tensors().map(|(b, _)| func.buffers[b].name.as_str());
            let all: Vec<&str> = all.collect();
            let text = format!("`{}` has no tensor `{name}`", func.name);
            Box::new(refuse(text).help(format!("its tensors are {}", all.join(", "))))
        })?;
        let path = path.to_string();
        Ok(FromFile {
            buffer,
            path,
            array,
        })
    });
    named.collect()
}

impl Files {
    /// Run-time sizes that shapes of files give and nobody else has given.
    pub fn sizes(&self, func: &Func) -> BTreeMap<String, i64> {
        let mut sizes = BTreeMap::new();
        for file in self.given.iter().chain(&self.expected) {
            let shape = &func.buffers[file.buffer].shape;
            for (extent, &found) in shape.iter().zip(file.array.shape()) {
                let symbol = extent.as_var().filter(|v| func.symbols.contains(v));
                if let (Some(var), Ok(found)) = (symbol, i64::try_from(found)) {
                    sizes.entry(func.vars[var].name.clone()).or_insert(found);
                }
            }
        }
        sizes
    }

    /// Puts the tensors of the files in the place of the made ones.
    pub fn put(&self, func: &Func, tensors: &mut sim::Args) -> Result<(), Box<Diagnostic>> {
        for file in &self.given {
            let data = &func.buffers[file.buffer];
            let made = tensors.tensor_mut(&data.name);
            let Some(made) = made else { continue };
            file.check_shape(func, made.shape())?;
            let read = file.array.tensor(data.dtype);
            let read = read.map_err(|e| file.refuse(func, e.to_string()))?;
            if made.is_contiguous() {
                tensors.insert(data.name.clone(), Arg::Tensor(read));
                continue;
            }
            for at in 0..read.len() {
                made.set(at, read.get(at).unwrap_or(Number::Int(0)));
            }
        }
        Ok(())
    }

    /// Compares what the kernel left with what is expected. What was compared, and the error where
    /// something differs.
    pub fn check(
        &self,
        args: &TensorArgs,
        func: &Func,
        tensors: &sim::Args,
    ) -> Result<Vec<Checked>, (Box<Diagnostic>, Vec<Checked>)> {
        let mut checked = Vec::new();
        for file in &self.expected {
            let data = &func.buffers[file.buffer];
            let fail = |diag| (diag, Vec::new());
            let Some(found) = tensors.tensor(&data.name) else {
                continue;
            };
            file.check_shape(func, found.shape()).map_err(fail)?;
            let expected = file.expected(func).map_err(fail)?;
            let tolerance = match (args.atol, args.rtol) {
                (None, None) => verdict::tolerance(func, file.buffer, &expected),
                (absolute, relative) => Tolerance {
                    absolute: absolute.unwrap_or(0.0),
                    relative: relative.unwrap_or(0.0),
                },
            };
            let Some(c) = compare_where(found, &expected, tolerance, |_| true) else {
                continue;
            };
            let one = Checked {
                name: data.name.clone(),
                path: file.path.clone(),
                elements: c.elements,
                wrong: c.mismatches,
                max_abs_err: c.max_abs_err,
                max_rel_err: c.max_rel_err,
                tolerance,
            };
            let diag = c.worst.map(|(at, is, should)| {
                let at = found.coordinates(at);
                one.diagnostic(func, file.buffer, &format!("{at:?} is {is}, not {should}"))
            });
            checked.push(one);
            if let Some(diag) = diag {
                return Err((Box::new(diag), checked));
            }
        }
        Ok(checked)
    }
}

impl FromFile {
    fn refuse(&self, func: &Func, text: String) -> Box<Diagnostic> {
        let data = &func.buffers[self.buffer];
        let text = format!("`{}` from {}: {text}", data.name, self.path);
        Box::new(Diagnostic::error(TENSOR_FILE, data.span, text))
    }

    fn check_shape(&self, func: &Func, wanted: &[usize]) -> Result<(), Box<Diagnostic>> {
        let lanes = usize::from(func.buffers[self.buffer].dtype.lanes);
        let mut wanted = wanted.to_vec();
        if lanes > 1 {
            wanted.push(lanes);
        }
        let found = self.array.shape();
        if found == wanted {
            return Ok(());
        }
        let text = format!("its shape is {found:?}, and {wanted:?} is wanted");
        Err(self.refuse(func, text))
    }

    /// What is expected: as the parameter's type, or as numbers of any type that NumPy has.
    fn expected(&self, func: &Func) -> Result<HostTensor, Box<Diagnostic>> {
        let dtype = func.buffers[self.buffer].dtype;
        let own = self.array.dtype().filter(|_| dtype.lanes == 1);
        let read = self.array.tensor(dtype);
        let read = read.or_else(|e| own.map_or(Err(e), |own| self.array.tensor(own)));
        read.map_err(|e| self.refuse(func, e.to_string()))
    }
}

/// A tensor that was compared with a file.
#[derive(Debug)]
pub struct Checked {
    name: String,
    path: String,
    elements: usize,
    wrong: usize,
    max_abs_err: f64,
    max_rel_err: f64,
    tolerance: Tolerance,
}

impl Checked {
    fn diagnostic(&self, func: &Func, buffer: Buffer, worst: &str) -> Diagnostic {
        let Checked { name, path, .. } = self;
        let text = format!(
            "`{name}` differs from {path} in {} of {} elements",
            self.wrong, self.elements
        );
        Diagnostic::error(NOT_AS_EXPECTED, func.buffers[buffer].span, text)
            .note(format!("the worst: `{name}`{worst}"))
            .note(format!(
                "largest difference {:.3e}, {:.3e} relative; allowed are {:.3e} and {:.3e} relative",
                self.max_abs_err,
                self.max_rel_err,
                self.tolerance.absolute,
                self.tolerance.relative
            ))
            .help("`--atol` and `--rtol` say how far it may be off")
    }

    pub fn to_text(&self) -> String {
        format!(
            "  {} agrees with {} in {} elements; largest difference: {:.3e} ({:.3e} relative)\n",
            self.name, self.path, self.elements, self.max_abs_err, self.max_rel_err
        )
    }

    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "file": self.path,
            "elements_compared": self.elements,
            "elements_wrong": self.wrong,
            "max_abs_err": self.max_abs_err,
            "max_rel_err": self.max_rel_err,
            "atol": self.tolerance.absolute,
            "rtol": self.tolerance.relative,
        })
    }
}

/// What a kernel does with a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    In,
    Out,
    InOut,
}

impl Role {
    pub const fn name(self) -> &'static str {
        match self {
            Role::In => "in",
            Role::Out => "out",
            Role::InOut => "inout",
        }
    }
}

/// What the kernels do with each tensor: declared outputs are outputs, and so is what is written.
pub fn roles(func: &Func) -> BTreeMap<Buffer, Role> {
    let (mut read, mut written) = (Vec::new(), Vec::new());
    for kernel in &func.kernels {
        walk_stmts(&kernel.body, &mut |stmt| {
            touched::touched(stmt, &mut |access| {
                let root = func.root(access.buffer);
                if access.mode.writes() {
                    written.push(root);
                }
                if access.mode.reads() {
                    read.push(root);
                }
            });
            stmt_exprs(stmt, &mut |expr| {
                expr.walk_distinct(&mut |node| {
                    if let ExprKind::Load { buffer, .. } = node.kind() {
                        read.push(func.root(*buffer));
                    }
                });
            });
        });
    }
    let role = |(buffer, output): (Buffer, bool)| {
        let role = match (output || written.contains(&buffer), read.contains(&buffer)) {
            (false, _) => Role::In,
            (true, true) if !output => Role::InOut,
            (true, _) => Role::Out,
        };
        (buffer, role)
    };
    func.tensors().map(role).collect()
}

/// Writes what the kernel wrote where `--out` says; the files' names.
pub fn write(
    args: &TensorArgs,
    func: &Func,
    tensors: &sim::Args,
) -> Result<Vec<String>, Box<Diagnostic>> {
    let Some(out) = &args.out else {
        return Ok(Vec::new());
    };
    let mut files = Vec::new();
    for (buffer, role) in roles(func) {
        let name = &func.buffers[buffer].name;
        if let (Role::Out | Role::InOut, Some(tensor)) = (role, tensors.tensor(name)) {
            files.push((name.clone(), npy::write(tensor)));
        }
    }
    if out.extension().is_some_and(|e| e == "npz") {
        let packed = npy::write_archive(&files);
        let packed = packed
            .map_err(|e| Box::new(Diagnostic::error(TENSOR_FILE, func.span, e.to_string())))?;
        output::write_file(out, &packed)?;
        return Ok(vec![show(out)]);
    }
    fs::create_dir_all(out).map_err(|e| Box::new(output::unwritable(out, &e)))?;
    let mut names = Vec::new();
    for (name, bytes) in files {
        let path = out.join(format!("{name}.npy"));
        output::write_file(&path, &bytes)?;
        names.push(show(&path));
    }
    Ok(names)
}

fn show(path: &Path) -> String {
    path.display().to_string()
}
