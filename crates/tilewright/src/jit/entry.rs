//! A compiled function as bytes: what the kernel cache keeps.
//!
//! Three parts, each with its length: the function's text without kernel bodies, a few lines on
//! each kernel's launch, the compiled program.

use std::fmt::Write as _;

use tilewright_codegen::{KernelArg, Source};
use tilewright_ir::{Buffer, FileId, Func, Param, Span, Var, text};
use tilewright_runtime::toolchain::Binary;

use super::error::Error;

/// How a kernel is launched; its grid and threads are the signature's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMeta {
    pub name: String,
    pub shared_bytes: u32,
    /// All blocks run at once and may wait for each other.
    pub cooperative: bool,
    pub args: Vec<MetaArg>,
}

/// An argument, by its place in the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaArg {
    /// A parameter: a tensor's address, or a scalar.
    Param(usize),
    Workspace(usize),
    Symbol(usize),
}

pub(super) struct Entry {
    pub signature: Func,
    pub kernels: Vec<KernelMeta>,
    pub code: Binary,
}

pub(super) fn encode(device: &Func, source: &Source, code: &Binary) -> Vec<u8> {
    let mut signature = device.clone();
    for kernel in &mut signature.kernels {
        kernel.body.clear();
    }
    let mut lines = String::new();
    for kernel in &source.kernels {
        let args: Vec<String> = kernel.args.iter().map(|a| place(device, *a)).collect();
        let _ = writeln!(
            lines,
            "{} {} {} {}",
            kernel.name,
            kernel.shared_bytes,
            u8::from(kernel.cooperative),
            args.join(",")
        );
    }
    let mut out = Vec::new();
    let code = code.encode();
    for part in [
        text::print(&signature).as_bytes(),
        lines.as_bytes(),
        code.as_slice(),
    ] {
        out.extend_from_slice(&(part.len() as u64).to_le_bytes());
        out.extend_from_slice(part);
    }
    out
}

/// `p0`, `w1`, `s2`: parameter, workspace, symbol.
fn place(func: &Func, arg: KernelArg) -> String {
    let param = |wanted: Param| func.params.iter().position(|p| *p == wanted);
    let tensor = |buffer: Buffer| {
        [false, true]
            .into_iter()
            .find_map(|output| param(Param::Tensor { buffer, output }))
    };
    let found = match arg {
        KernelArg::Buffer { buffer, .. } => match tensor(buffer) {
            Some(i) => Some(('p', i)),
            None => {
                let position = func.workspaces.iter().position(|&w| w == buffer);
                position.map(|i| ('w', i))
            }
        },
        KernelArg::Scalar(var) => match param(Param::Scalar(var)) {
            Some(i) => Some(('p', i)),
            None => func
                .symbols
                .iter()
                .position(|&s| s == var)
                .map(|i| ('s', i)),
        },
    };
    let (kind, index) = found.unwrap_or(('?', 0));
    format!("{kind}{index}")
}

pub(super) fn decode(bytes: &[u8]) -> Result<Entry, Error> {
    let bad = |what: &str| Error::plain("jit-bad-entry", Span::NONE, format!("a kernel's {what}"));
    let mut rest = bytes;
    let mut part = || -> Option<&[u8]> {
        let (length, tail) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let part = tail.get(..length)?;
        rest = &tail[length..];
        Some(part)
    };
    let (Some(ir), Some(lines), Some(code)) = (part(), part(), part()) else {
        return Err(bad("entry is cut short"));
    };
    let ir = std::str::from_utf8(ir).map_err(|_| bad("signature is no text"))?;
    let signature = text::parse(ir, FileId(0)).map_err(|_| bad("signature cannot be read"))?;
    let lines = std::str::from_utf8(lines).map_err(|_| bad("launch is no text"))?;
    let kernels: Option<Vec<KernelMeta>> = lines.lines().map(kernel).collect();
    Ok(Entry {
        signature,
        kernels: kernels.ok_or_else(|| bad("launch cannot be read"))?,
        code: Binary::decode(code).map_err(Error::Toolchain)?,
    })
}

fn kernel(line: &str) -> Option<KernelMeta> {
    let mut words = line.split(' ');
    let name = words.next()?.to_string();
    let shared_bytes = words.next()?.parse().ok()?;
    let cooperative = words.next()? == "1";
    let args = words.next()?.split(',').filter(|a| !a.is_empty());
    let args: Option<Vec<MetaArg>> = args
        .map(|arg| {
            let index = arg.get(1..)?.parse().ok()?;
            Some(match arg.chars().next()? {
                'p' => MetaArg::Param(index),
                'w' => MetaArg::Workspace(index),
                's' => MetaArg::Symbol(index),
                _ => return None,
            })
        })
        .collect();
    Some(KernelMeta {
        name,
        shared_bytes,
        cooperative,
        args: args?,
    })
}

/// What an argument is in the signature.
pub(super) enum Operand {
    Buffer(Buffer),
    Scalar(Var),
}

impl MetaArg {
    pub(super) fn operand(self, func: &Func) -> Option<Operand> {
        Some(match self {
            MetaArg::Param(i) => match *func.params.get(i)? {
                Param::Tensor { buffer, .. } => Operand::Buffer(buffer),
                Param::Scalar(var) => Operand::Scalar(var),
            },
            MetaArg::Workspace(i) => Operand::Buffer(*func.workspaces.get(i)?),
            MetaArg::Symbol(i) => Operand::Scalar(*func.symbols.get(i)?),
        })
    }
}
